// Writes the lines of the log: some gather while others are written. Callers never wait; beyond a limit lines are
// dropped and counted. pino's own destination takes only text, and access lines are bytes
// (docs/decisions/0004-a-lean-request-path.md).
import { write } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'

/** Size of one write, and so the step in which a slow reader makes room. */
const stepBytes = 256 * 1024
/** Pause before a write is retried on a descriptor that does not block. */
const retryMs = 100
const lineFeed = 0x0a
const writeSome = promisify(write)
const nothing = Buffer.alloc(0)

/** `maxBytes`: the most kept while nobody reads; `tellDropped`: called with new dropped lines once there is room again. */
export type LineFileOptions = { descriptor: number; maxBytes: number; tellDropped: (lines: number) => void }

export class LineFile {
  /** Number of lines dropped so far. */
  dropped = 0
  readonly #options: LineFileOptions
  #gathered: Buffer[] = []
  /** What is being written, or could not be. */
  #rest: Buffer = nothing
  /** Size of all that is not written yet. */
  #keptBytes = 0
  #writing: Promise<void> | undefined
  #told = 0

  constructor(options: LineFileOptions) {
    this.#options = options
  }

  /** Copies whole lines. */
  write(lines: Uint8Array | string): void {
    const bytes = typeof lines === 'string' ? Buffer.from(lines) : Buffer.from(lines)
    if (this.#keptBytes + bytes.length > this.#options.maxBytes) this.dropped += countLines(bytes)
    else {
      this.#gathered.push(bytes)
      this.#keptBytes += bytes.length
    }
    this.#writeOn()
  }

  /** Resolves once everything is written, or cannot be. */
  async end(): Promise<void> {
    this.#writeOn()
    await this.#writing
  }

  /** Begins to write, unless that is under way; retries a write that failed before. */
  #writeOn(): void {
    if (this.#keptBytes > 0) this.#writing ??= this.#writeAll()
  }

  /** Writes until nothing is left, or a write fails: a log that cannot be written is no reason to stop serving. */
  async #writeAll(): Promise<void> {
    while (this.#keptBytes > 0) {
      if (this.#rest.length === 0) this.#rest = this.#takeGathered()
      try {
        const bytes = Math.min(this.#rest.length, stepBytes)
        const { bytesWritten } = await writeSome(this.#options.descriptor, this.#rest, 0, bytes)
        this.#keptBytes -= bytesWritten
        // An empty part would keep all of it alive.
        this.#rest = bytesWritten < this.#rest.length ? this.#rest.subarray(bytesWritten) : nothing
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EPIPE') this.#dropAll()
        if (code !== 'EAGAIN') break
        // Another program may have made a terminal or pipe non-blocking.
        await setTimeout(retryMs)
      }
      this.#tellDropped()
    }
    this.#writing = undefined
  }

  #takeGathered(): Buffer {
    const gathered = this.#gathered
    this.#gathered = []
    return gathered.length === 1 ? (gathered[0] as Buffer) : Buffer.concat(gathered)
  }

  /** Drops everything: the reader of a pipe is gone. */
  #dropAll(): void {
    this.dropped += countLines(this.#rest) + countLines(this.#takeGathered())
    this.#rest = nothing
    this.#keptBytes = 0
  }

  #tellDropped(): void {
    const lines = this.dropped - this.#told
    if (lines === 0 || this.#keptBytes >= this.#options.maxBytes / 2) return
    this.#told = this.dropped
    this.#options.tellDropped(lines)
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines++
  return lines
}
