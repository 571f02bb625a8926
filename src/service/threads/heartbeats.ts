// A thread that hangs serves nobody, and cannot say so. Each one marks shared memory while its event loop turns, and the
// main thread looks for the marks. Should that one hang, its health server does not answer.
import type { Logger } from 'pino'
import { beatMs, hungMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'

/** Sets the mark of a thread again and again. */
export function beat(beats: Int32Array, thread: number): void {
  setInterval(() => Atomics.store(beats, thread, 1), beatMs).unref()
}

const words = { gone: 'a thread hangs', back: 'no thread hangs any more' }

export class Heartbeats {
  readonly #beats: Int32Array
  readonly #outage: Outage
  /** Missed heartbeats in a row, by thread. A process that was stopped as a whole has missed none. */
  readonly #missed: number[]
  #looking: NodeJS.Timeout | undefined

  /** `beats`: of each thread, that of the main one first, which sets none. */
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
