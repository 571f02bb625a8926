// The targets of batches: the log of a store, or nothing when the input is only checked.
import { listShown } from '../../../schemas/plant.ts'
import type { Entry, Outcome } from '../../store/store.ts'
import type { Progressed } from './import-place.ts'
import type { InputRecord } from './record.ts'
import type { Reason } from './rejects.ts'

/** `records`: what each entry with an id was in the input; `end`: what was read by then. */
export type Batch = {
  entries: Entry[]
  records: (InputRecord | undefined)[]
  end: Omit<Progressed, 'rejects'>
}

export type Tally = Record<Outcome, number>

/** `start`: what an earlier run has imported. */
export type Sink = {
  readonly start: Progressed
  readonly tally: Tally
  /** Progress that is certain. */
  readonly committed: Progressed
  /** Resolves when the batch is under way. Rejects when the one before it failed. */
  write(batch: Batch): Promise<void>
  /** Resolves when nothing is under way. */
  settle(): Promise<void>
  /** Notes that the input was read to its end. */
  end(): Promise<void>
  close(): Promise<void>
}

export const beginning: Progressed = { records: 0, line: 0, rejects: 0 }

export const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}
