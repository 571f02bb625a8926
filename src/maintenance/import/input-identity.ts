// By what an input is known again: by the first records that were consumed, and by nothing behind them. So it may have
// grown since, and a fault there may have been mended.
import { createHash } from 'node:crypto'
import type { InputRecord } from './record.ts'

/** A hash of the first so many records. */
export type Fingerprint = { hashed: number; hash: string }

export class InputIdentity {
  readonly #header: string
  readonly #head: InputRecord[]
  #last: Fingerprint

  /** `head`: the records of the input's first part; `header`: its header row, if it has one. */
  constructor(head: InputRecord[], header: unknown) {
    this.#head = head
    this.#header = JSON.stringify(header ?? null)
    this.#last = this.#hash(head.length)
  }

  /** The fingerprint of the input once so many records were consumed. */
  fingerprint(records: number): Fingerprint {
    const hashed = Math.min(records, this.#head.length)
    if (this.#last.hashed !== hashed) this.#last = this.#hash(hashed)
    return this.#last
  }

  /** True when this input begins with the records of a fingerprint. */
  beginsWith({ hashed, hash }: Fingerprint): boolean {
    return hashed > 0 && hashed <= this.#head.length && this.fingerprint(hashed).hash === hash
  }

  #hash(hashed: number): Fingerprint {
    const hash = createHash('sha256').update(this.#header)
    for (const { source } of this.#head.slice(0, hashed)) hash.update('\n').update(JSON.stringify(source))
    return { hashed, hash: hash.digest('base64url') }
  }
}
