// Validators in zod and in valibot by hey-api.
import { is } from 'valibot'
import { vNewPlant, vPlant, vPlantList } from '../generated/hey-api/valibot.gen.ts'
import { zNewPlant, zPlant, zPlantList } from '../generated/hey-api/zod.gen.ts'
import { checkValidators } from './validators.ts'

await checkValidators({
  zod: {
    body: (value) => zNewPlant.safeParse(value).success,
    plant: (value) => zPlant.safeParse(value).success,
    list: (value) => zPlantList.safeParse(value).success,
  },
  valibot: {
    body: (value) => is(vNewPlant, value),
    plant: (value) => is(vPlant, value),
    list: (value) => is(vPlantList, value),
  },
})
