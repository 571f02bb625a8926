// Writes the lines of the log: some gather while others are written. Callers never wait; beyond a limit lines are
// dropped and counted. pino's own destination takes only text, and access lines are bytes
// (docs/decisions/0004-a-lean-request-path.md).
import { write } from 'node:fs'

/** Size of one write, and so the step in which a slow reader makes room. */
const writeBytes = 256 * 1024
/** Pause before a write is retried on a descriptor that does not block. */
const retryMs = 100
const lineFeed = 0x0a

/** `maxBytes`: the most kept while nobody reads; `tellDropped`: called with new dropped lines once there is room again. */
export type LineFileOptions = { descriptor: number; maxBytes: number; tellDropped: (lines: number) => void }

export class LineFile {
  /** Number of lines dropped so far. */
  dropped = 0
  readonly #options: LineFileOptions
  #gathered: Buffer[] = []
  #gatheredBytes = 0
  /** What is being written, and what is left of it. */
  #writing: Buffer = Buffer.alloc(0)
  #isUnderWay = false
  #isGone = false
  #ended: (() => void) | undefined
  #told = 0

  constructor(options: LineFileOptions) {
    this.#options = options
  }

  /** Copies whole lines. */
  write(lines: Uint8Array | string): void {
    const bytes = typeof lines === 'string' ? Buffer.from(lines) : Buffer.from(lines)
    if (this.#isGone || this.#kept + bytes.length > this.#options.maxBytes) this.dropped += countLines(bytes)
    else {
      this.#gathered.push(bytes)
      this.#gatheredBytes += bytes.length
    }
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
    return this.#gatheredBytes + this.#writing.length
  }

  #writeOn(): void {
    if (this.#writing.length === 0) this.#writing = this.#takeGathered()
    this.#isUnderWay = this.#writing.length > 0
    if (!this.#isUnderWay) {
      this.#ended?.()
      return
    }
    const bytes = Math.min(this.#writing.length, writeBytes)
    write(this.#options.descriptor, this.#writing, 0, bytes, null, this.#written)
  }

  #takeGathered(): Buffer {
    const gathered = this.#gathered
    this.#gathered = []
    this.#gatheredBytes = 0
    return gathered.length === 1 ? (gathered[0] as Buffer) : Buffer.concat(gathered)
  }

  readonly #written = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    if (error) {
      this.#fail(error)
      return
    }
    this.#writing = this.#writing.subarray(bytes)
    this.#writeOn()
    const lines = this.dropped - this.#told
    if (lines > 0 && this.#kept < this.#options.maxBytes / 2) {
      this.#told = this.dropped
      this.#options.tellDropped(lines)
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
    this.dropped += countLines(this.#writing) + countLines(this.#takeGathered())
    this.#writing = Buffer.alloc(0)
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines++
  return lines
}
