// Messages between the HTTP threads and the writer thread. A request and its answer have the same number.
import type { FileId } from '../../../runtime/same-file.ts'
import type { NoteChange, Outcome } from '../../engine.ts'
import type { FailedOutcome } from '../../errors.ts'
import type { Value } from '../../sql/sql.ts'

/** Items and their ids: posting two flat arrays is several times faster than an object per plant. */
export type Batch = { items: string[]; ids: (number | undefined)[]; note?: NoteChange | undefined }

export type Statement = { text: string; values: Record<string, Value> }

export type Work = Batch | Statement

/** `deadlineMs`: of the clock that all threads share (src/runtime/clock.ts). */
export type Request = Work & { number: number; deadlineMs: number }

/** Messages to the writer, from the ports that the main thread sends it. */
export type Order = Request | 'close'

/** `lost`: the path no longer names the open files; `broken`: the database must be reopened. */
export type Failure = {
  outcome: FailedOutcome
  failed: string
  code: number
  lost?: boolean
  broken?: boolean
}

export type Done = Outcome[] | number
export type Result = { done: Done } | Failure
export type Answer = { number: number } & Result

/** The first message of the writer to the main thread: the open files, see `OpenFiles`, or why there are none. */
export type Started = { opened: FileId[] } | { refused: string }

/** Further messages to the main thread, for the log. `recovered`: the first success after a failure of any thread. */
export type WriterEvent = Failure | 'recovered' | 'reopened'
