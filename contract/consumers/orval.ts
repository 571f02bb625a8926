// Validators in zod by orval.
import { CreatePlantBody, CreatePlantResponse, ListPlantsResponse } from '../generated/orval.ts'
import { checkValidators } from './validators.ts'

await checkValidators({
  zod: {
    body: (value) => CreatePlantBody.safeParse(value).success,
    plant: (value) => CreatePlantResponse.safeParse(value).success,
    list: (value) => ListPlantsResponse.safeParse(value).success,
  },
})
