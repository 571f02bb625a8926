// The state of a store.
import type { EngineStatus } from '../../store/engine-status.ts'

export type StoreStatus = EngineStatus & {
  /** Of the command that looks, not of a service that runs. */
  version: string
  engine: string
  schemaVersion: number
  store: string
  head: number
  /** Number of epochs; 0 in a store of a version without them. */
  epochs: number
  tokens: { active: number; expired: number; revoked: number }
}
