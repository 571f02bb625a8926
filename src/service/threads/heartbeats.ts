// Detects hung threads: each marks shared memory while its event loop turns, and the main thread checks the marks. When
// the main thread itself hangs, its health server does not answer.
import type { Logger } from 'pino'
import { beatMs, hungMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'

/** Sets the mark of a thread at intervals. */
export function beat(beats: Int32Array, thread: number): void {
  setInterval(() => Atomics.store(beats, thread, 1), beatMs).unref()
}

const words = { gone: 'a thread hangs', back: 'no thread hangs any more' }

export class Heartbeats {
  readonly #beats: Int32Array
  readonly #outage: Outage
  /** Missed heartbeats in a row, per thread. While the whole process is stopped, none are missed. */
  readonly #missed: number[]
  #looking: NodeJS.Timeout | undefined

  /** `beats`: a mark per thread; that of the main thread, the first, is not used. */
  constructor(beats: Int32Array, logger: Logger) {
    this.#beats = beats
    this.#outage = new Outage(logger, words)
    this.#missed = Array.from(beats, () => 0)
  }

  watch(): void {
    this.#looking = setInterval(() => this.#look(), beatMs).unref()
  }

  get hasHung(): boolean {
    return this.#missed.some(isHung)
  }

  close(): void {
    clearInterval(this.#looking)
  }

  /* c8 ignore next 6: a process whose thread hangs is killed (test/service/threads.test.ts), and leaves no coverage */
  #look(): void {
    for (let thread = 1; thread < this.#beats.length; thread++)
      this.#missed[thread] = Atomics.exchange(this.#beats, thread, 0) ? 0 : Number(this.#missed[thread]) + 1
    if (this.hasHung) this.#outage.reportFailure(`thread ${this.#missed.findIndex(isHung)} does not answer`)
    else this.#outage.reportRecovery()
  }
}

function isHung(missed: number): boolean {
  return missed * beatMs >= hungMs
}
