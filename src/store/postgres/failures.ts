// Failures of servers: their messages for operators, and whether a retry may succeed.
import pg from 'pg'
import { type FailedOutcome, StoreRefused, StoreUnavailable } from '../errors.ts'

/** SQLSTATEs of transient failures: a retry, perhaps on another server, may succeed. */
const passing = /^(08|25006|25P03|40|53300|55P03|57)/

/** Advice by SQLSTATE: the server's own message may be in any language. */
const advice: Record<string, string> = {
  '25006': 'it is read-only: default_transaction_read_only is on, or it has become a standby',
  '28000': 'pg_hba.conf lets nobody in so, or there is no such role',
  '28P01': 'the user or the password is wrong',
  '3D000': 'there is no such database: create it',
  '3F000': 'search_path names no schema that exists',
  '42501': 'the role lacks rights: it must own the tables, or be granted all of them',
  '53100': 'its disk is full',
  '53300': 'all its connections are taken: raise max_connections, or run fewer threads',
  '57P01': 'it was shut down, or told to end this session',
  '57P02': 'it is restarting after a crash',
  '57P03': 'it is starting or shutting down',
  ECONNREFUSED: 'nothing listens there: start the server, or correct host and port',
  ENOTFOUND: 'there is no such host',
}

export class ServerFailure extends Error {
  /** `server`: host:port/database. */
  constructor(server: string, cause: Error) {
    super(`${server}: ${explain(cause)}`, { cause })
  }
}

/** Formats an error for operators. */
export function explain({ message, code }: Error & { code?: string }): string {
  const todo = advice[String(code)]
  const said = message || String(code)
  return todo ? `${todo} (${said})` : said
}

/** True when a retry would fail, too, as the server refused the request itself. */
export function isFinal(error: unknown): boolean {
  const said = error instanceof ServerFailure ? error.cause : error
  if (said instanceof StoreRefused || said instanceof StoreUnavailable) return true
  return said instanceof pg.DatabaseError && !passing.test(String(said.code))
}

/** Picks the most useful failure: a refusal (wrong password, missing database) before an unreachable server. */
export function mostTelling(failures: ServerFailure[]): Error {
  return failures.find(isSaid) ?? new Error(failures.map(({ message }) => message).join('; '))
}

/** True when a failure is an answer of the server, or what was found in it. */
export function isSaid({ cause }: Error): boolean {
  return cause instanceof pg.DatabaseError || cause instanceof StoreRefused
}

/** Makes a function that throws an error. */
export function fail(message: string): () => never {
  return () => {
    throw new Error(message)
  }
}

type Failed = Exclude<FailedOutcome, 'overloaded'>

const words: Record<Failed, string> = {
  'nothing-added': 'the database took nothing',
  unknown: 'the database stopped in the middle of a commit, whether it happened is unknown',
  unread: 'the database could not be read',
}

/** Makes a handler for `catch` that throws the error of a store. */
export function refuse(outcome: Failed): (cause: unknown) => never {
  return (cause) => {
    throw new StoreUnavailable(outcome, `${words[outcome]}: ${(cause as Error).message}`, { cause })
  }
}
