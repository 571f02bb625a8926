// Validators in zod by kubb.
import { newPlantSchema, plantListSchema, plantSchema } from '../generated/kubb/zod.ts'
import { checkValidators } from './validators.ts'

await checkValidators({
  zod: {
    body: (value) => newPlantSchema.safeParse(value).success,
    plant: (value) => plantSchema.safeParse(value).success,
    list: (value) => plantListSchema.safeParse(value).success,
  },
})
