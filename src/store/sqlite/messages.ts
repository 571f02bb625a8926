// What the main thread and the writer thread say to each other. Every request has a number, and its answer the same.
import type { Lost, Mark, Outcome, Value } from '../store.ts'
import type { FileIds } from './files.ts'

/** Items and ids in turn: one flat array crosses the threads several times faster than one object per plant. */
export type FlatEntries = (string | number | undefined)[]

/** `probe`: whether a batch could begin now. */
export type Work =
  | { append: FlatEntries; mark?: Mark | undefined }
  | { text: string; values: Record<string, Value> }
  | { probe: true }

/** `deadlineMs` is on the clock of `monotonicMs`. */
export type Request = Work & { number: number; deadlineMs: number }

/** `index`: the descriptor of the open `-shm`, which the thread uses and never closes. */
export type Order = Request | { index: number } | 'close'

/** `lost`: the path no longer names the open files; `broken`: the thread lets go of the database and ends. */
export type Failure = { outcome: Lost; failed: string; code: number; lost?: boolean; broken?: boolean }

export type Done = Outcome[] | number
export type Answer = { number: number } & ({ done: Done } | Failure)

/** How the start went, before any answer. */
export type Opened = { opened: FileIds } | { refused: string }

export type ThreadOptions = {
  path: string
  mustExist: boolean
  /** The store that must be there. */
  id?: string | undefined
  /** After an I/O error: rewrite and sync what the file system may have lost (see database.ts). */
  repair?: boolean
  /** After the files were lost: read all of the database before it is believed. */
  verify?: boolean
}

/** Milliseconds on a clock that all threads share; `performance.now()` starts anew in each. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
