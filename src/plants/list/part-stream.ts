// A list as a stream of parts, each made when the client reads.
import { Readable } from 'node:stream'

export class PartStream extends Readable {
  readonly #parts: AsyncGenerator<Buffer, void>
  #sentBytes = 0

  constructor(parts: (stream: Readable) => AsyncGenerator<Buffer, void>) {
    // Buffer nothing here: parts go to the reader at once.
    super({ highWaterMark: 0 })
    this.#parts = parts(this)
  }

  /** Bytes that the reader has taken. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  override _read(): void {
    this.#parts.next().then(
      ({ value: part }) => {
        this.#sentBytes += part?.length ?? 0
        this.push(part ?? null)
      },
      (error) => this.destroy(error),
    )
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#parts.return().catch(() => {})
    done(error)
  }
}
