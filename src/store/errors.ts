// The errors of a store, whatever its engine.

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

/** The database cannot be used; the message is one line for the operator. */
export class StoreRefused extends Error {}

/** There is no database; the message says where. */
export class StoreMissing extends StoreRefused {}
