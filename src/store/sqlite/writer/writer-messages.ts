// Messages between the threads that serve requests and the writer thread. Every request has a number, and its
// answer the same.
import type { MessagePort } from 'node:worker_threads'
import type { Checkpoint, FailedOutcome, Outcome, Value } from '../../store.ts'
import type { FileIds } from '../files/files.ts'

/** Items and ids in turn: one flat array crosses the threads several times faster than one object per plant. */
export type FlatEntries = (string | number | undefined)[]

export type Batch = { append: FlatEntries; mark?: Checkpoint | undefined }

/** `probe`: whether a batch could begin now. */
export type Work = Batch | { text: string; values: Record<string, Value> } | { probe: true }

/** `deadlineMs` is on the clock that all threads share (src/runtime/clock.ts). */
export type Request = Work & { number: number; deadlineMs: number }

/** Messages to the writer. `port`: another thread's, whose requests it takes as well. */
export type Order = Request | { port: MessagePort } | 'close'

/** `lost`: the path no longer names the open files; `broken`: the thread lets go of the database and ends. */
export type Failure = {
  outcome: FailedOutcome
  failed: string
  code: number
  lost?: boolean
  broken?: boolean
}

export type Done = Outcome[] | number
export type Result = { done: Done } | Failure
/** `number` 0: the thread ends, and what it has not answered it has not begun. */
export type Answer = { number: number } & Result

/** The result of the start, before any answer. */
export type Opened = { opened: FileIds } | { refused: string }

export type ThreadOptions = {
  path: string
  mustExist: boolean
  keepsSchema?: boolean
  /** The files that must be there. */
  known?: FileIds
  /** After an I/O error: rewrite and sync what the file system may have lost (see database.ts). */
  repair?: boolean
}

/** Access of another thread to the open files. `writer`: where its requests go. */
export type Attachment = { writer: MessagePort; known: FileIds; path: string }

/** Messages of the main thread to another one that shares its store. `close`: let go of the files. */
export type ToClient = { attach: Attachment } | { unavailable: string } | 'close'

/** `attach`: it needs a writer; `check`: a read failed; `recovered`: a request was done after one that failed. */
export type FromClient = { failed: Failure } | 'attach' | 'check' | 'recovered'
