// The hash of the beginning of an input, by which it is known again: of all that was consumed.
import { createHash } from 'node:crypto'
import { maxRecordBytes } from './record.ts'

/** Chunks are kept for a record that may end in them. */
const keptBytes = 2 * maxRecordBytes

export class Beginning {
  readonly #hash = createHash('sha256')
  #chunks: Buffer[] = []
  #keptBytes = 0
  #latest = { bytes: 0, hash: '' }
  /** Bytes that were hashed. */
  #hashed = 0

  get bytes(): number {
    return this.#hashed + this.#keptBytes
  }

  add(chunk: Buffer): void {
    while (this.#keptBytes > keptBytes) this.#feed(this.#chunks[0]?.length as number)
    this.#chunks.push(chunk)
    this.#keptBytes += chunk.length
  }

  /** The SHA-256 (hex) of the first bytes. `bytes`: never fewer than before, and not far from the end of the input. */
  hash(bytes: number): string {
    if (bytes === this.#latest.bytes) return this.#latest.hash
    while (this.#hashed < bytes) this.#feed(bytes - this.#hashed)
    this.#latest = { bytes, hash: this.#hash.copy().digest('hex') }
    return this.#latest.hash
  }

  #feed(most: number): void {
    const chunk = this.#chunks.shift() as Buffer
    const part = chunk.subarray(0, most)
    if (part.length < chunk.length) this.#chunks.unshift(chunk.subarray(part.length))
    this.#hash.update(part)
    this.#hashed += part.length
    this.#keptBytes -= part.length
  }
}
