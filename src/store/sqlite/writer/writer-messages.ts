// Messages between the HTTP threads and the writer thread. A request and its answer have the same number.
import type { MessagePort } from 'node:worker_threads'
import type { Checkpoint, FailedOutcome, Outcome, Value } from '../../store.ts'
import type { FileIds } from '../files/files.ts'

/** Alternating items and ids: posting a flat array is several times faster than an object per plant. */
export type FlatEntries = (string | number | undefined)[]

export type Batch = { append: FlatEntries; mark?: Checkpoint | undefined }

/** `probe`: checks that a batch could begin now. */
export type Transaction = Batch | { text: string; values: Record<string, Value> } | { probe: true }

/** `files`: asks for the open files. */
export type Work = Transaction | { files: true }

/** `deadlineMs`: of the clock that all threads share (src/runtime/clock.ts). */
export type Request<W = Work> = W & { number: number; deadlineMs: number }

/** Messages to the writer. `port`: of another thread, whose requests it serves from now on. */
export type Order = Request | { port: MessagePort } | 'close'

/** `lost`: the path no longer names the open files; `broken`: the database must be reopened. */
export type Failure = {
  outcome: FailedOutcome
  failed: string
  code: number
  lost?: boolean
  broken?: boolean
}

export type Done = Outcome[] | number | FileIds
export type Result = { done: Done } | Failure
export type Answer = { number: number } & Result

export type ThreadOptions = { path: string; mustExist: boolean; keepsSchema: boolean }

/** Messages of the writer to the main thread: the result of the start, and events for the log. */
export type FromWriter = { opened: FileIds } | { refused: string } | Failure | 'recovered' | 'reopened'
