// Writes the lines of the log with two buffers: one fills while the other is written. Callers never wait; beyond a
// limit lines are dropped and counted. pino's own destination takes only text, and access lines are bytes
// (docs/decisions/0004-a-lean-request-path.md).
import { write } from 'node:fs'

/** Size of one write, and so the step in which a slow reader makes room. */
const writeBytes = 256 * 1024
/** A buffer that has grown beyond this is released once it is written. */
const usualBytes = 512 * 1024
/** Pause before a write is retried on a descriptor that does not block. */
const retryMs = 100
const lineFeed = 0x0a

export type LineFileOptions = {
  descriptor: number
  /** The most bytes kept while the log is not read. */
  maxBytes: number
  /** Called with the number of dropped lines once there is room again. */
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

  /** Copies whole lines into the buffer. */
  write(lines: Uint8Array | string): void {
    const bytes = typeof lines === 'string' ? Buffer.byteLength(lines) : lines.length
    if (this.#isGone || this.#kept + bytes > this.#maxBytes) this.#drop(lines)
    else this.#keep(lines, bytes)
    // Retry a write that failed before.
    if (!this.#isUnderWay) this.#writeOn()
  }

  /** Resolves once everything is written, or cannot be. */
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

  /** Keeps the lines for a retry with the next one: a log that cannot be written is no reason to stop serving. */
  #fail({ code }: NodeJS.ErrnoException): void {
    // Another program may have made a terminal or pipe non-blocking.
    if (code === 'EAGAIN') {
      setTimeout(() => this.#writeOn(), retryMs)
      return
    }
    this.#isUnderWay = false
    if (code === 'EPIPE') this.#giveUp()
    this.#ended?.()
  }

  /** Drops everything: the reader is gone for good. */
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
