// The bytes of answers that are on their way, or kept ready for clients that take their time. They are bounded for the
// process, and nobody may hold more than a multiple of what is left for all: however much one asks for, there is room
// for the next (the dynamic thresholds of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).

export class BytesInFlight {
  readonly #max: number
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  get total(): number {
    return this.#total
  }

  /** Notes that `owner` holds `bytes` more; false, when that is more than `share` times what is left for all. */
  take(owner: string, bytes: number, share: number): boolean {
    const held = (this.#held.get(owner) ?? 0) + bytes
    if (held > share * (this.#max - this.#total)) return false
    this.#held.set(owner, held)
    this.#total += bytes
    return true
  }

  give(owner: string, bytes: number): void {
    const held = (this.#held.get(owner) ?? 0) - bytes
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
    this.#total -= bytes
  }
}
