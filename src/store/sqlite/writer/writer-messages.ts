// Messages between the threads that serve requests and the writer thread. Every request has a number, and its
// answer the same.
import type { MessagePort } from 'node:worker_threads'
import type { Checkpoint, FailedOutcome, Outcome, Value } from '../../store.ts'
import type { FileIds } from '../files/files.ts'

/** Items and ids in turn: one flat array crosses the threads several times faster than one object per plant. */
export type FlatEntries = (string | number | undefined)[]

export type Batch = { append: FlatEntries; mark?: Checkpoint | undefined }

/** `probe`: whether a batch could begin now. */
export type Transaction = Batch | { text: string; values: Record<string, Value> } | { probe: true }

/** `files`: which ones are open. */
export type Work = Transaction | { files: true }

/** `deadlineMs` is on the clock that all threads share (src/runtime/clock.ts). */
export type Request<W = Work> = W & { number: number; deadlineMs: number }

/** Messages to the writer. `port`: another thread's, whose requests it takes as well. */
export type Order = Request | { port: MessagePort } | 'close'

/** `lost`: the path no longer names the open files; `broken`: the thread lets go of the database, and opens it anew. */
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

/** Messages of the writer to the main thread: the result of the start, and what the log is to be told. */
export type FromWriter = { opened: FileIds } | { refused: string } | Failure | 'recovered' | 'reopened'
