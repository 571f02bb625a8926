// Failures of servers: their messages for operators, and whether a retry may succeed.
import pg from 'pg'
import { type FailedOutcome, StoreRefused, StoreUnavailable } from '../errors.ts'

/** SQLSTATEs of transient failures: a retry, perhaps on another server, may succeed. */
const transient = /^(08|25006|25P03|40|53300|55P03|57)/

/** Advice by SQLSTATE or by the code of a socket's error: the server's own message may be in any language. */
const advice: Record<string, string> = {
  '25006': 'it is read-only: default_transaction_read_only is on, or it has become a standby',
  '28000': 'pg_hba.conf does not allow this connection, or the role does not exist',
  '28P01': 'the user or the password is wrong',
  '3D000': 'the database does not exist: create it',
  '3F000': 'search_path names no existing schema',
  '42501':
    'the role lacks rights: make it the owner of the database, or grant it CREATE on the schema and all rights on the tables',
  '53100': 'its disk is full',
  '53300': 'all its connections are in use: raise max_connections, or run fewer processes',
  '57P01': 'it was shut down, or told to end this session',
  '57P02': 'it is restarting after a crash',
  '57P03': 'it is starting or shutting down',
  ECONNREFUSED: 'nothing listens there: start the server, or correct host and port',
  ENOTFOUND: 'the host does not exist',
}

/** A failure on one server. `cause`: the error itself. */
export class ServerFailure extends Error {
  /** `server`: host:port/database. */
  constructor(server: string, cause: Error) {
    super(`${server}: ${explain(cause)}`, { cause })
  }
}

/** Formats an error for operators. */
export function explain({ message, code }: Error & { code?: string }): string {
  const todo = advice[String(code)]
  const reason = message || String(code)
  return todo ? `${todo} (${reason})` : reason
}

/** True if a retry would fail too, as the server refused the request itself. */
export function isFinal(error: unknown): boolean {
  const reason = error instanceof ServerFailure ? error.cause : error
  if (reason instanceof StoreRefused || reason instanceof StoreUnavailable) return true
  return reason instanceof pg.DatabaseError && !transient.test(String(reason.code))
}

/** Picks the most useful failure: a refusal (wrong password, missing database) before an unreachable server. */
export function mostTelling(failures: ServerFailure[]): Error {
  const isAnswer = ({ cause }: Error) => cause instanceof pg.DatabaseError || cause instanceof StoreRefused
  return failures.find(isAnswer) ?? new Error(failures.map(({ message }) => message).join('; '))
}

const words: Record<FailedOutcome, string> = {
  'nothing-added': 'nothing was written',
  unknown: 'the database failed during a commit, whose outcome is unknown',
  unread: 'the database could not be read',
  overloaded: 'too much waits for the database',
}

/** Makes a handler for `catch` that throws the error of a store. */
export function refuse(outcome: FailedOutcome): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof StoreUnavailable && cause.outcome === 'overloaded') throw cause
    throw new StoreUnavailable(outcome, `${words[outcome]}: ${(cause as Error).message}`, { cause })
  }
}
