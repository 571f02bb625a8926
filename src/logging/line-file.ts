// Writes the lines of the log: into one of two buffers, while the other is being written. Callers never wait; beyond a
// limit lines are counted and dropped. pino's destination takes text only: access lines, which are bytes, had
// to become text for it and bytes again (docs/decisions/0004-a-lean-request-path.md).
import { write } from 'node:fs'

/** Size of one write: a slow reader makes room in such steps. */
const writeBytes = 256 * 1024
/** A buffer that has grown beyond this is given up once it is written. */
const usualBytes = 512 * 1024
/** Pause before a write is retried on a descriptor that does not block. */
const retryMs = 100
const lineFeed = 0x0a

export type LineFileOptions = {
  descriptor: number
  /** The most that is kept while the log is not read. */
  maxBytes: number
  /** Is told how many lines had no room, once there is room again. */
  dropped: (lines: number) => void
}

export class LineFile {
  readonly #descriptor: number
  readonly #maxBytes: number
  readonly #tell: (lines: number) => void
  #filling = Buffer.allocUnsafeSlow(usualBytes)
  #length = 0
  #writing = Buffer.allocUnsafeSlow(usualBytes)
  /** The unwritten part of `#writing`. */
  #from = 0
  #to = 0
  #isUnderWay = false
  #isGone = false
  #ended: (() => void) | undefined
  #dropped = 0
  #told = 0

  constructor({ descriptor, maxBytes, dropped }: LineFileOptions) {
    this.#descriptor = descriptor
    this.#maxBytes = maxBytes
    this.#tell = dropped
  }

  /** Number of lines dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes whole lines, and keeps no hold of them. */
  write(lines: Uint8Array | string): void {
    const bytes = typeof lines === 'string' ? Buffer.byteLength(lines) : lines.length
    if (this.#isGone || this.#kept + bytes > this.#maxBytes) this.#drop(lines)
    else this.#keep(lines, bytes)
    // Retries a write that failed before, which makes room.
    if (!this.#isUnderWay) this.#writeOn()
  }

  /** Resolves once all is written, or cannot be. */
  end(): Promise<void> {
    return new Promise((resolve) => {
      this.#ended = resolve
      if (!this.#isUnderWay) this.#writeOn()
    })
  }

  get #kept(): number {
    return this.#length + this.#to - this.#from
  }

  #drop(lines: Uint8Array | string): void {
    this.#dropped += countLines(typeof lines === 'string' ? Buffer.from(lines) : lines)
  }

  #keep(lines: Uint8Array | string, bytes: number): void {
    this.#makeRoom(bytes)
    if (typeof lines === 'string') this.#filling.write(lines, this.#length)
    else this.#filling.set(lines, this.#length)
    this.#length += bytes
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#filling.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#filling.length * 2))
    this.#filling.copy(larger, 0, 0, this.#length)
    this.#filling = larger
  }

  #writeOn(): void {
    if (this.#from === this.#to) this.#exchange()
    this.#isUnderWay = this.#from < this.#to
    if (!this.#isUnderWay) {
      this.#ended?.()
      return
    }
    const bytes = Math.min(this.#to - this.#from, writeBytes)
    write(this.#descriptor, this.#writing, this.#from, bytes, null, this.#written)
  }

  /** Swaps the two buffers. */
  #exchange(): void {
    const written = this.#writing
    this.#writing = this.#filling
    this.#from = 0
    this.#to = this.#length
    this.#filling = written.length > usualBytes ? Buffer.allocUnsafeSlow(usualBytes) : written
    this.#length = 0
  }

  readonly #written = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    if (error) {
      this.#fail(error)
      return
    }
    this.#from += bytes
    this.#writeOn()
    if (this.#dropped > this.#told && this.#kept < this.#maxBytes / 2) {
      const lines = this.#dropped - this.#told
      this.#told = this.#dropped
      this.#tell(lines)
    }
  }

  /** A log that cannot be written is no reason to stop serving: what there is waits for the next line to be tried again. */
  #fail({ code }: NodeJS.ErrnoException): void {
    // Another program may have set a terminal, or a pipe, not to block.
    if (code === 'EAGAIN') {
      setTimeout(() => this.#writeOn(), retryMs)
      return
    }
    this.#isUnderWay = false
    if (code === 'EPIPE') this.#giveUp()
    this.#ended?.()
  }

  /** The reader is gone for good. */
  #giveUp(): void {
    this.#isGone = true
    const unread = [this.#writing.subarray(this.#from, this.#to), this.#filling.subarray(0, this.#length)]
    for (const lines of unread) this.#dropped += countLines(lines)
    this.#from = this.#to = this.#length = 0
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines++
  return lines
}
