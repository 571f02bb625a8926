// Accounts for the bytes of answers that are being sent or wait for slow clients. Their sum is bounded, and each token
// may hold at most a multiple of what is left, so that there is always room for others (the dynamic thresholds of
// Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).

/** Bytes held by the bearer of one token. */
export type Account = { bytes: number }

export class BytesInFlight {
  readonly #max: number
  /** Accounts by token, at most as many as there were valid tokens. */
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

  /** Adds `bytes` to an account; false when it would hold more than `share` times what is left. */
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
