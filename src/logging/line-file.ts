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

/** `maxBytes`: the most kept while nobody reads; `tellDropped`: called with new dropped lines once there is room again. */
export type LineFileOptions = { descriptor: number; maxBytes: number; tellDropped: (lines: number) => void }

export class LineFile {
  /** Number of lines dropped so far. */
  dropped = 0
  readonly #options: LineFileOptions
  #gathered: Buffer[] = []
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
    // Also retries a write that failed before.
    void this.end()
  }

  /** Resolves once everything is written, or cannot be. */
  end(): Promise<void> {
    if (this.#keptBytes > 0) this.#writing ??= this.#writeAll()
    return this.#writing ?? Promise.resolve()
  }

  /** Writes until nothing is left, or a write fails: a log that cannot be written is no reason to stop serving. */
  async #writeAll(): Promise<void> {
    let rest = this.#takeGathered()
    while (rest.length > 0) {
      try {
        const bytes = Math.min(rest.length, stepBytes)
        const { bytesWritten } = await writeSome(this.#options.descriptor, rest, 0, bytes)
        this.#keptBytes -= bytesWritten
        rest = rest.subarray(bytesWritten)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code !== 'EAGAIN') {
          this.#keepOrDrop(rest, code)
          break
        }
        // Another program may have made a terminal or pipe non-blocking.
        await setTimeout(retryMs)
      }
      this.#tellDropped()
      if (rest.length === 0) rest = this.#takeGathered()
    }
    this.#writing = undefined
  }

  #takeGathered(): Buffer {
    const gathered = this.#gathered
    this.#gathered = []
    return gathered.length === 1 ? (gathered[0] as Buffer) : Buffer.concat(gathered)
  }

  /** Keeps the rest for a retry with the next line, or drops everything if the reader of a pipe is gone. */
  #keepOrDrop(rest: Buffer, code: string | undefined): void {
    this.#gathered.unshift(rest)
    if (code !== 'EPIPE') return
    this.dropped += countLines(this.#takeGathered())
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
