// Messages between the main thread and the writer thread. A request and its answer have the same number.
import type { NoteChange, Outcome } from '../engine.ts'
import type { FailedOutcome } from '../errors.ts'
import type { Value } from '../sql/sql.ts'
import type { FileId } from './file-system.ts'

/** Items and their ids: posting two flat arrays is several times faster than an object per plant. */
export type Batch = { items: string[]; ids: (number | undefined)[]; note?: NoteChange | undefined }

/** `mayBeLost`: see `Sql`. */
export type Statement = { text: string; values: Record<string, Value>; mayBeLost?: boolean | undefined }

export type Work = Batch | Statement

/** `deadlineMs`: of `sharedMs`. */
export type Request = Work & { number: number; deadlineMs: number }

/** Messages to the writer. */
export type Order = Request | 'close'

/**
 * `lost`: the path no longer names the open files; `broken`: the database must be reopened; `unsynced`: a sync failed,
 * which ends the process.
 */
export type Failure = {
  outcome: FailedOutcome
  failed: string
  code: number
  lost: boolean
  broken: boolean
  unsynced: boolean
}

export type Done = Outcome[] | number
export type Result = { done: Done } | Failure
/** `reopened`: the database was opened again for this request. */
export type Answer = { number: number; reopened: boolean } & Result

/** The first message of the writer: the open files, see `OpenFiles`, or why there are none. */
export type Started = { opened: FileId[] } | { refused: string }

/** Milliseconds of a clock that both threads share; `performance.now()` starts at 0 in each. */
export function sharedMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
