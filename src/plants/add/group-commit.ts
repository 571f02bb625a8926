// Group commit: requests that arrive while a batch is being committed form the next batch, so that they share one wait
// for stable storage.
import type { FastifyReply } from 'fastify'
import { exchangeOf, waits } from '../../http/connection/in-flight.ts'
import { maxWaitingPlants, shortestAttemptMs } from '../../limits.ts'
import { type Meter, noMeter, type Observe, secondBounds } from '../../runtime/meter.ts'
import type { Entry, Outcome, PlantLog } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { deliver, failWith } from '../delivery.ts'
import { BatchDelay } from './batch-delay.ts'

/** Sends the answer of a request whose entry has this outcome; what it throws is sent instead. */
export type AnswerAdded = (outcome: Outcome, reply: FastifyReply, entry: Entry) => void

const plantBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

type Pending = { entry: Entry; reply: FastifyReply; deadlineMs: number }

export class GroupCommit {
  readonly #log: PlantLog
  readonly #answer: AnswerAdded
  readonly #delay = new BatchDelay()
  readonly #countPlants: Observe
  readonly #countCommit: Observe
  #line: Pending[] = []
  #committing = false

  constructor(log: PlantLog, answer: AnswerAdded, meter: Meter = noMeter) {
    this.#log = log
    this.#answer = answer
    meter.gauge('plant_store_plants_waiting', 'Plants that wait for the next batch.', () => this.#line.length)
    this.#countPlants = meter.histogram('plant_store_batch_plants', 'Plants in a batch.', plantBounds)
    const name = 'plant_store_commit_duration_seconds'
    const help = 'Time from handing a batch to the database to its outcome.'
    this.#countCommit = meter.histogram(name, help, secondBounds, 'outcome', ['committed', 'failed'])
  }

  /**
   * Adds an entry to the next batch; `reply` is sent once it is on stable storage. An entry whose request has
   * ended before the batch begins is not added. `deadlineMs`: time of `performance.now()` at which the store gives up.
   * Throws StoreUnavailable.
   */
  append(entry: Entry, reply: FastifyReply, deadlineMs: number): void {
    if (this.#line.length >= maxWaitingPlants)
      throw new StoreUnavailable('overloaded', 'too many plants are waiting')
    this.#line.push({ entry, reply, deadlineMs })
    this.#delay.noteWaiting(this.#line.length)
    if (!this.#committing) void this.#commitAll()
  }

  async #commitAll(): Promise<void> {
    this.#committing = true
    let answered = 0
    let commitMs = 0
    while (this.#line.length > 0) {
      // Clients that were just answered tend to send their next request at once.
      await this.#delay.wait(answered + this.#line.length, commitMs)
      const batch = this.#takeBatch()
      const startMs = performance.now()
      if (batch.length > 0) await this.#commit(batch)
      commitMs = performance.now() - startMs
      answered = batch.length
    }
    this.#committing = false
  }

  /** Takes the whole queue, apart from requests that are nearly due: the whole batch would be given up with them. */
  #takeBatch(): Pending[] {
    const line = this.#line.filter(({ reply }) => waits(reply))
    this.#line = []
    const soonMs = performance.now() + shortestAttemptMs
    const late = line.filter(({ deadlineMs }) => deadlineMs < soonMs)
    if (late.length === 0) return line
    this.#fail(late, new StoreUnavailable('nothing-added', 'a plant was not added in time'))
    return line.filter(({ deadlineMs }) => deadlineMs >= soonMs)
  }

  /**
   * Fails a batch. If nothing was added because the time of its oldest plant was up, the plants that have time left are
   * tried again.
   */
  #giveUp(batch: Pending[], error: unknown): void {
    const soonMs = performance.now() + shortestAttemptMs
    const [younger, late] = [[], []] as [Pending[], Pending[]]
    for (const one of batch) (one.deadlineMs < soonMs ? late : younger).push(one)
    const isTriedAgain =
      late.length > 0 && error instanceof StoreUnavailable && error.outcome === 'nothing-added'
    this.#fail(isTriedAgain ? late : batch, error)
    if (isTriedAgain) this.#line.unshift(...younger)
  }

  #fail(batch: Pending[], error: unknown): void {
    for (const { reply } of batch) deliver(reply, failWith(error))
  }

  async #commit(batch: Pending[]): Promise<void> {
    let outcomes: Outcome[]
    this.#countPlants(batch.length)
    const startMs = performance.now()
    const count = (outcome: string) => this.#countCommit((performance.now() - startMs) / 1000, outcome)
    try {
      // From now on the entries may be added, even if no outcome arrives.
      for (const { reply } of batch) exchangeOf(reply.request).timeoutOutcome = 'unknown'
      outcomes = await this.#log.append(
        batch.map(({ entry }) => entry),
        Math.min(...batch.map(({ deadlineMs }) => deadlineMs)),
      )
      if (outcomes.length !== batch.length) throw miscounted(outcomes, batch)
      count('committed')
    } catch (error) {
      count('failed')
      this.#giveUp(batch, error)
      return
    }
    batch.forEach(({ reply, entry }, index) => {
      deliver(reply, () => this.#answer(outcomes[index] as Outcome, reply, entry))
    })
  }
}

/** The store must return one outcome per entry. */
function miscounted(outcomes: Outcome[], batch: unknown[]): StoreUnavailable {
  const message = `the store gave ${outcomes.length} outcomes for ${batch.length} plants`
  return new StoreUnavailable('unknown', message)
}
