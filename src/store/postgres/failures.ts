// What went wrong at which server, in words for an operator, and whether another attempt may go better.
import pg from 'pg'
import { type Lost, StoreRefused, StoreUnavailable } from '../store.ts'

/** What the server says of a fault that another attempt, perhaps on another server, may not meet. */
const passing = /^(08|25006|25P03|40|53300|55P03|57)/

export class ServerFailure extends Error {
  /** `server`: host:port. */
  constructor(server: string, cause: Error & { code?: string }) {
    // Only the failure of a name with several addresses has a code and no message.
    /* c8 ignore next: only the failure of a name with several addresses has no message */
    super(`${server}: ${cause.message || cause.code}`, { cause })
  }
}

/** Whether the server's word is its last: it refused what was asked, and would do so again. */
export function isFinal(error: unknown): boolean {
  const said = error instanceof ServerFailure ? error.cause : error
  if (said instanceof StoreRefused || said instanceof StoreUnavailable) return true
  return said instanceof pg.DatabaseError && !passing.test(String(said.code))
}

/** What a server said (a wrong password, a database that is not there) says more than that another is not reachable. */
export function mostTelling(failures: ServerFailure[]): Error {
  const said = failures.find(
    ({ cause }) => cause instanceof pg.DatabaseError || cause instanceof StoreRefused,
  )
  return said ?? new Error(failures.map(({ message }) => message).join('; '))
}

type Failed = Exclude<Lost, 'overloaded'>

const words: Record<Failed, string> = {
  'nothing-added': 'the database took nothing',
  unknown: 'the database stopped in the middle of a commit, whether it happened is unknown',
  unread: 'the database could not be read',
}

/** The error of a store that could not do what it was asked for. */
export function unavailable(outcome: Failed, cause: unknown): StoreUnavailable {
  if (cause instanceof StoreUnavailable) return cause
  return new StoreUnavailable(outcome, `${words[outcome]}: ${(cause as Error).message}`, { cause })
}

/** A handler for `catch`. */
export function refuse(outcome: Failed): (cause: unknown) => never {
  return (cause) => {
    throw unavailable(outcome, cause)
  }
}
