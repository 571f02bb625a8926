// The errors of a store, on every engine.

/** `unknown`: something may have been added. `overloaded`: too many requests are waiting; nothing was done. */
export type FailedOutcome = 'nothing-added' | 'unknown' | 'unread' | 'overloaded'

/** The store is unavailable. Message and cause are for the operator, never for a client. */
export class StoreUnavailable extends Error {
  readonly outcome: FailedOutcome
  /** True if the failure has already been logged, or need not be logged. */
  readonly isQuiet: boolean

  constructor(outcome: FailedOutcome, message: string, options?: ErrorOptions & { isQuiet?: boolean }) {
    super(message, options)
    this.name = 'StoreUnavailable'
    this.outcome = outcome
    this.isQuiet = options?.isQuiet ?? false
  }
}

/** The database cannot be used; the message is one line for the operator. */
export class StoreRefused extends Error {
  /** True if the database does not exist. */
  readonly isMissing: boolean

  constructor(message: string, options?: ErrorOptions & { isMissing?: boolean }) {
    super(message, options)
    this.isMissing = options?.isMissing ?? false
  }
}
