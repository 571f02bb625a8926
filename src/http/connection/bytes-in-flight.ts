// The bytes of answers that are on their way, or kept ready for clients that take their time. They are bounded for the
// process, and nobody may hold more than a multiple of what is left for all: however much one asks for, there is room
// for the next (the dynamic thresholds of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).

/** Bytes held by the bearer of one token. */
export type Account = { bytes: number }

export class BytesInFlight {
  readonly #max: number
  /** Those of all tokens that were used: as many as there are valid ones, at most. */
  readonly #accounts = new Map<string, Account>()
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  get total(): number {
    return this.#total
  }

  account(owner: string): Account {
    const known = this.#accounts.get(owner)
    if (known) return known
    const account = { bytes: 0 }
    this.#accounts.set(owner, account)
    return account
  }

  /** Notes that an account holds `bytes` more; false, when that is more than `share` times what is left for all. */
  take(account: Account, bytes: number, share: number): boolean {
    if (bytes > 0 && account.bytes + bytes > share * (this.#max - this.#total)) return false
    account.bytes += bytes
    this.#total += bytes
    return true
  }

  give(account: Account, bytes: number): void {
    account.bytes -= bytes
    this.#total -= bytes
  }
}
