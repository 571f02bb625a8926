// Options and result of an import.
import type { Fault } from '../../../schemas/problem.ts'
import type { Outcome, Store, StoreView } from '../../store/engine.ts'
import type { RecordOptions } from './records.ts'

export type ImportOptions = RecordOptions & {
  /** `-` is stdin. */
  path: string
  /** Checks everything first, and adds nothing when a record is rejected. */
  strict?: boolean
  /** Goes on behind what an earlier import of the same input consumed. */
  resume?: boolean
  /** Starts from the beginning in spite of an earlier import of the same input. */
  restart?: boolean
  /** Only checks. */
  dryRun?: boolean
  /** The file for rejected records. */
  rejects?: string | undefined
  /** Tells of the first rejected records alone. */
  isTerminal?: boolean
  /** Ends the import after the current batch; its reason is thrown. */
  signal: AbortSignal
  /** Called once the input is known to be readable. */
  openStore: () => Promise<Store>
  /** Called by a dry run instead; resolves to undefined when there is no store. */
  openView?: () => Promise<StoreView | undefined>
  /** Called with lines that the user should see at once. */
  say: (line: string) => void
  /** `readShare`: share of the file that was read; undefined for a pipe. */
  onProgress?: (records: number, readShare: number | undefined) => void
  /** Counts on while the import runs. */
  result?: ImportResult
  /** Records in one batch, whose plants are added in one transaction. */
  batchPlants: number
  /** A batch that fails because the store is unavailable is retried for this long. */
  patienceMs: number
}

/** A fault of a record; `id-conflict` comes from the store. */
export type Reason = Omit<Fault, 'code'> & { code: Fault['code'] | 'id-conflict' }

/**
 * `records`: records processed; `skipped`: those of them that an earlier run had processed; `reasons`: why the first of
 * the others were rejected.
 */
export type ImportResult = Record<Outcome, number> & {
  records: number
  skipped: number
  rejected: number
  reasons: { line: number; reason: string; errors: Reason[] }[]
}
