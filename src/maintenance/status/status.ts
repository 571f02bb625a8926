// What there is to know of a store.
import type { EngineStatus } from '../../store/engine-status.ts'

export type StoreStatus = EngineStatus & {
  /** Of the command that looks, not of a service that runs. */
  version: string
  engine: string
  schemaVersion: number
  store: string
  head: number
  /** How many there have been; 0 in a store of a version that had none yet. */
  epochs: number
  tokens: { active: number; expired: number; revoked: number }
}
