// Options and result of an import.
import type { Store } from '../../store/store.ts'
import type { Tally } from './batch-writer.ts'
import type { FieldOptions } from './fields.ts'
import type { Input } from './input.ts'
import type { Format } from './input-format.ts'

/** A batch holds the database's lock for some tens of milliseconds: others get their turn in between. */
export const defaultBatchPlants = 2500
/** As long as a cluster takes to find a new primary, and some more. */
export const defaultPatienceMs = 20_000

export type ImportOptions = FieldOptions & {
  /** `-` is stdin. */
  path: string
  format?: Format | undefined
  /** Takes away white space around texts, cells of numbers and column names. */
  trim?: boolean
  /** Looks first, and adds nothing when a record is rejected. */
  strict?: boolean
  /** Goes on where an import of the same input was cut short. */
  resume?: boolean
  /** Begins anew although an import of the same input was cut short. */
  restart?: boolean
  /** Only checks: no store is opened. */
  dryRun?: boolean
  /** The file for rejected records. */
  rejects?: string | undefined
  /** Ends the import after the batch under way; what it was aborted with is thrown. */
  signal: AbortSignal
  /** Is called once the input turned out to be readable. */
  openStore: () => Promise<Store>
  /** Is told what whoever waits should know at once, a line at a time. */
  say: (line: string) => void
  onProgress?: (records: number, input: Input) => void
  /** Is told what an import that has begun came to, however it ends. */
  onEnd?: (result: ImportResult) => void
  /** Plants added in one transaction. */
  batchPlants?: number
  /** A batch that the store does not take is retried this long. */
  patienceMs?: number
}

/** `records`: how many were read and dealt with; `skipped`: how many of those an earlier run had imported. */
export type ImportResult = Tally & { records: number; skipped: number; rejected: number }
