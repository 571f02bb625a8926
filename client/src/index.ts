// Everything that the package exports.
export type { components, operations, paths } from './contract.ts'
export {
  type Fault,
  PlantStoreError,
  PlantStoreFailure,
  PlantStoreUnreachable,
  type Problem,
  type ProblemKind,
} from './errors.ts'
export {
  type AllOptions,
  type CallOptions,
  type ListOptions,
  makeId,
  type NewPlant,
  type Plant,
  type PlantPage,
  PlantStore,
  type PlantStoreOptions,
  type Plants,
} from './plant-store.ts'
export type { RetryOptions } from './retry.ts'
