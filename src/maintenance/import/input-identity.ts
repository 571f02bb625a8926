// Recognizes an input by the first records that were consumed, and by nothing behind them: it may have grown since, and
// a fault there may have been fixed.
import { createHash } from 'node:crypto'
import type { InputRecord } from './record.ts'

/** A hash of the first `hashed` records. */
export type Fingerprint = { hashed: number; hash: string }

export class InputIdentity {
  readonly #header: string
  readonly #head: InputRecord[]
  #last: Fingerprint

  /** `head`: the records in the beginning of the input; `header`: its header row, if any. */
  constructor(head: InputRecord[], header: unknown) {
    this.#head = head
    this.#header = JSON.stringify(header ?? null)
    this.#last = this.#hash(head.length)
  }

  /** The fingerprint after a number of consumed records. */
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
