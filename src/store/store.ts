// The seam between the service and its databases: a log of plants with three verbs, and plain SQL for the little
// else there is (tokens). An engine is one folder that provides this; everything above it is written once.
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Epochs } from './epochs.ts'

/** A plant as the log keeps it: the JSON text that every response shows, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** The outcome of an entry. `replayed`: the id was there with an equal item; `conflict`: with another one. */
export type Outcome = 'added' | 'replayed' | 'conflict'

/** The last position of the log (0: it is empty), and the epochs that own its positions, both seen at one moment. */
export type Head = { readonly position: number; readonly epochs: Epochs }

/** A note kept with a batch, in its transaction: the progress of whoever adds batch after batch. */
export type Checkpoint = { key: string; value: string }

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with exactly one outcome per
   * entry. Gives up at `deadlineMs` (of `performance.now()`; default: `storeLimitMs` from now). Rejects with
   * StoreUnavailable: `nothing-added` when that is certain, `unknown` otherwise. `mark` becomes a row of `meta`, also
   * when nothing is added.
   */
  append(entries: Entry[], deadlineMs?: number, mark?: Checkpoint): Promise<Outcome[]>
  /** The durable log's head. It counts every batch that was acknowledged, by any replica, before the call. */
  head(): Head | Promise<Head>
  /**
   * The JSON array of the items at positions `after` + 1 to `last`: bytes in UTF-8, which are the caller's own. `epoch`
   * owns position `last` (see `Head`): the array is what the log held in that epoch and all of it, or the call rejects
   * with StoreUnavailable (`unread`).
   */
  read(after: number, last: number, epoch: string): Buffer | Promise<Buffer>
}

export type Value = string | number | null
export type Row = Record<string, Value>

/** Portable SQL with parameters $1, $2, …; integers within ±(2^53−1). Rejects with StoreUnavailable. */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /** Runs one statement that changes something, durably; resolves to the number of rows it changed. */
  execute(text: string, values?: Value[]): Promise<number>
}

export interface Store {
  /** Names this store for ever, on every replica: 128 random bits in base64url. */
  readonly id: string
  readonly log: PlantLog
  readonly sql: Sql
  /** Resolves when the store can be written now. Rejects with StoreUnavailable. */
  ready(): Promise<void>
  /** The settings of the database's server that are off and can cost acknowledged plants, where there is a server. */
  unsafeSettings?(): Promise<string[]>
  /**
   * A port through which another thread of this process opens the same store (see `StoreOptions`). Where there is none,
   * each thread opens the store by its URL.
   */
  share?(): MessagePort
  /** Waits for what is under way, then lets go of the database. */
  close(): Promise<void>
}

/** `unknown`: whether something was added cannot be told. `overloaded`: too much waits already, so nothing was done. */
export type FailedOutcome = 'nothing-added' | 'unknown' | 'unread' | 'overloaded'

/** The store cannot do now what it was asked for. The message and cause are for the operator, never for a client. */
export class StoreUnavailable extends Error {
  readonly outcome: FailedOutcome
  /** True when the store has told the log itself; a caller then need not. */
  readonly isLogged: boolean

  constructor(
    outcome: FailedOutcome,
    message: string,
    { isLogged = false, ...options }: ErrorOptions & { isLogged?: boolean } = {},
  ) {
    super(message, options)
    this.name = 'StoreUnavailable'
    this.outcome = outcome
    this.isLogged = isLogged
  }
}

/** The name of the service's sessions; the id of the process follows it. */
export const serviceName = 'plant-store serve'

/** The database cannot be used as it is; the message is one line for the operator. */
export class StoreRefused extends Error {}

/** There is no database at the absolute path in the message. */
export class StoreMissing extends StoreRefused {
  constructor(path: string) {
    super(`there is no file ${path}`)
  }
}

/**
 * `mustExist`: a database that is not there is refused, not made. `keepsSchema`: so is one of an older version, which is
 * brought up to date otherwise, when no service of such a version runs on it. `name`: how its sessions are called in PostgreSQL.
 * `reconnected`: is told of each connection that was made anew. `port`: what the `share` of the store gave, if anything,
 * in the thread that has it open.
 */
export type StoreOptions = {
  logger: Logger
  mustExist?: boolean
  keepsSchema?: boolean
  name?: string
  reconnected?: () => void
  port?: MessagePort | undefined
}
