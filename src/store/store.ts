// The interface between the service and its databases: a log of plants with three verbs, and notes on tokens. An engine is
// a folder that implements it; everything above is written once.
import { isDeepStrictEqual } from 'node:util'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Epochs } from './epochs.ts'

/** A plant in the log: the JSON text that responses contain, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** The outcome of an entry. `replayed`: the id existed with an equal item; `conflict`: with another one. */
export type Outcome = 'added' | 'replayed' | 'conflict'

/** True when two items have equal values: older versions may have serialized them differently. */
export function sameItem(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}

/** The last position of the log (0: empty), and the epochs that own its positions, both of one moment. */
export type Head = { readonly position: number; readonly epochs: Epochs }

/**
 * The new value of a row of `meta`, written in the transaction of a batch: the progress of an import. The batch fails
 * unless the row has the value `before`.
 */
export type Checkpoint = { key: string; value: string; before: string }

/** The statement that writes a checkpoint; NULL, which no value may be, makes its transaction fail. */
export function advance(key: string, value: string, before: string): string {
  return `UPDATE meta SET value = CASE WHEN value = ${before} THEN ${value} END WHERE key = ${key}`
}

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with exactly one outcome per
   * entry. Gives up at `deadlineMs` (of `performance.now()`; default: `storeLimitMs` from now). Rejects with
   * StoreUnavailable: `nothing-added` when that is certain, `unknown` otherwise. `mark` is written also when nothing is
   * added.
   */
  append(entries: Entry[], deadlineMs?: number, mark?: Checkpoint): Promise<Outcome[]>
  /** Reads the head of the durable log, which counts every batch that any replica acknowledged before the call. */
  head(): Head | Promise<Head>
  /**
   * Reads the JSON array of the items at positions `after` + 1 to `last`, in UTF-8; the caller owns the buffer. `epoch`
   * owns position `last` (see `Head`). Rejects with StoreUnavailable (`unread`) unless the log holds all of them in
   * that epoch.
   */
  read(after: number, last: number, epoch: string): Buffer | Promise<Buffer>
}

/** Times are milliseconds since 1970. */
export type StoredToken = {
  id: string
  name: string
  hash: string
  scopes: string[]
  createdAt: number
  expiresAt: number | null
  lastUsedAt: number | null
  revokedAt: number | null
}

/** A token that was neither used nor revoked. */
export type NewStoredToken = Omit<StoredToken, 'lastUsedAt' | 'revokedAt'>

/**
 * The notes on tokens. Each is written durably and at once, in one order for all replicas. A token is valid while it is
 * not revoked and `expiresAt` is null or after `now`. All reject with StoreUnavailable.
 */
export interface TokenNotes {
  /** True when the store has ever had a token. */
  hasAny(): Promise<boolean>
  /** Adds a token; false when its id is known, or its name is that of one that is valid when it is created. */
  add(token: NewStoredToken): Promise<boolean>
  /**
   * Adds a token with the name and the scopes of a former one, which then ends at `endsAt`; false when that is not valid,
   * or expires, and a newer one of its name is valid.
   */
  exchange(formerId: string, endsAt: number, newer: NewStoredToken, now: number): Promise<boolean>
  find(ids: string[]): Promise<StoredToken[]>
  /** Finds the valid tokens with a name, and the token with that id. */
  findNamed(text: string, now: number): Promise<StoredToken[]>
  /** Finds the latest of the tokens with a name, created at a time or later, of which there is one. */
  findLatest(name: string, since: number): Promise<StoredToken>
  countValid(now: number): Promise<number>
  /** False when there is no such token, or it is already revoked. */
  revoke(id: string, now: number): Promise<boolean>
  /** Notes the use of a token, unless one after `before` is noted. */
  touch(id: string, now: number, before: number): Promise<void>
}

export type Value = string | number | null
export type Row = Record<string, Value>

/** Portable SQL with parameters $1, $2, …, and integers within ±(2^53−1). Rejects with StoreUnavailable. */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /** Runs one writing statement durably; resolves to the number of rows that it changed. */
  execute(text: string, values?: Value[]): Promise<number>
}

export interface Store {
  /** Identifies this store for ever, on every replica: 128 random bits in base64url. */
  readonly id: string
  readonly log: PlantLog
  readonly tokens: TokenNotes
  /** For maintenance (import, copy, repair) alone: an engine without SQL rejects. */
  readonly sql: Sql
  /** Resolves when the store is writable now. Rejects with StoreUnavailable. */
  ready(): Promise<void>
  /** What the servers of the database said last, while none can be used. */
  fault?(): string | undefined
  /** Names settings of the database's server, if there is one, that can lose acknowledged plants. */
  unsafeSettings?(): Promise<string[]>
  /**
   * Makes a port through which another thread opens the same store (see `StoreOptions`), or none when each thread can
   * open it by its URL. A store without this method is served by one thread.
   */
  share?: (() => MessagePort | undefined) | undefined
  /** Waits for running work, then closes the database. */
  close(): Promise<void>
}

/** `unknown`: something may have been added. `overloaded`: nothing was done, as too much waits already. */
export type FailedOutcome = 'nothing-added' | 'unknown' | 'unread' | 'overloaded'

/** The store cannot do that now. Message and cause are for the operator, never for a client. */
export class StoreUnavailable extends Error {
  readonly outcome: FailedOutcome
  /** True when the store has logged the failure itself. */
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

/** The name of the service's sessions; in PostgreSQL the random id of the thread follows it. */
export const serviceName = 'plant-store serve'

/** The database cannot be used; the message is one line for the operator. */
export class StoreRefused extends Error {}

/** There is no database; the message says where. */
export class StoreMissing extends StoreRefused {}

/**
 * `mustExist`: refuse a missing database instead of creating it. `keepsSchema`: refuse an older version instead of
 * migrating it. `name`: of its sessions in PostgreSQL. `reconnected`: called for each connection made again. `lost`:
 * called with the number of plants that were in the log and are no more. `port`: from `share` of the store, in the thread
 * that has it open. `isFurther`: this process has the store open already, and has warned of its settings. `made`: called
 * when there was no store, and one was made. `mustBeAlone`: make none beside the tables of others. `patienceMs`: time to
 * wait for a server.
 */
export type StoreOptions = {
  logger: Logger
  mustExist?: boolean
  keepsSchema?: boolean
  name?: string
  patienceMs?: number
  made?: () => void
  reconnected?: () => void
  lost?: (plants: number) => void
  isFurther?: boolean
  port?: MessagePort | undefined
  mustBeAlone?: boolean
}
