// A long list, compressed on its way: a part is read, compressed in the thread pool and handed on when its reader asks.
import { Readable } from 'node:stream'
import type { FairPool } from '../../../runtime/fair-pool.ts'
import type { Codec } from './codec.ts'

export type CodedStreamOptions = { codec: Codec; jobs: FairPool; owner: string }

/** Keeps nothing: what one part became is with the reader before the next one is taken from the list. */
export class CodedStream extends Readable {
  readonly #list: Readable
  readonly #parts: AsyncIterator<Buffer>
  readonly #options: CodedStreamOptions
  #isWhole = false
  #sentBytes = 0

  constructor(list: Readable, options: CodedStreamOptions) {
    super({ highWaterMark: 0 })
    this.#list = list
    this.#parts = list[Symbol.asyncIterator]()
    this.#options = options
  }

  /** How much its reader has taken, compressed. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  override _read(): void {
    if (this.#isWhole) this.push(null)
    else this.#next().catch((error) => this.destroy(error))
  }

  /** A part may be too little for the codec to give anything yet. */
  async #next(): Promise<void> {
    const { codec, jobs, owner } = this.#options
    let bytes: Buffer
    do {
      const { value: part, done } = await this.#parts.next()
      this.#isWhole = done === true
      bytes = await jobs.run(owner, () => (this.#isWhole ? codec.finish() : codec.add(part)))
    } while (bytes.length === 0 && !this.#isWhole)
    this.#sentBytes += bytes.length
    this.push(bytes)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#list.destroy()
    this.#options.codec.close()
    done(error)
  }
}
