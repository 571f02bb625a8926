// Writes the lines of the log through sonic-boom, as pino does: some gather while others are written, and callers never
// wait. Beyond a limit lines are dropped and counted; what could not be written is tried again with the next line.
import sonicBoom, { type SonicBoom } from 'sonic-boom'

const lineFeed = 0x0a

/** `maxBytes`: the most kept while nobody reads; `tellDropped`: called with new dropped lines once all others are written. */
export type LineFileOptions = { descriptor: number; maxBytes: number; tellDropped: (lines: number) => void }

export class LineFile {
  /** Number of lines dropped so far. */
  dropped = 0
  readonly #options: LineFileOptions
  #file: SonicBoom
  /** Lines handed over since all were written. */
  #pending = 0
  #told = 0

  constructor(options: LineFileOptions) {
    this.#options = options
    this.#file = this.#open()
  }

  /** Copies whole lines. */
  write(lines: Uint8Array | string): void {
    const bytes = Buffer.from(lines as string)
    this.#pending += countLines(bytes)
    this.#file.write(bytes as never)
  }

  /** Resolves once everything is written, or cannot be. */
  end(): Promise<void> {
    // So that a process that is slow to get on is not taken for a reader that is.
    if (this.#pending === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const over = () => resolve()
      // `flush` with a callback would sync the file, which may take long.
      this.#file.once('drain', over).once('error', over).flush()
    })
  }

  #open(): SonicBoom {
    const { descriptor, maxBytes, tellDropped } = this.#options
    // Without a least length, `flush` does nothing.
    const lengths = { maxLength: maxBytes, minLength: 1 }
    const file = new sonicBoom.SonicBoom({ fd: descriptor, contentMode: 'buffer', ...lengths })
    file.on('drop', (lines) => {
      this.#drop(countLines(lines as never))
      // Once full it would not try again by itself.
      file.flush()
    })
    file.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code !== 'EPIPE') return
      // The reader of a pipe is gone, and another may come: drop what was for the first.
      this.#drop(this.#pending)
      this.#file = this.#open()
    })
    file.on('drain', () => {
      this.#pending = 0
      const lines = this.dropped - this.#told
      this.#told = this.dropped
      if (lines > 0) tellDropped(lines)
    })
    return file
  }

  #drop(lines: number): void {
    this.dropped += lines
    this.#pending -= lines
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines++
  return lines
}
