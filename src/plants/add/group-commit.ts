// Group commit: requests that arrive while a batch is being committed form the next batch, so that they share one wait
// for stable storage.
import { maxWaitingPlants, shortestAttemptMs } from '../../limits.ts'
import { type Meter, noMeter, type Observe, secondBounds } from '../../runtime/meter.ts'
import { type Entry, type Outcome, type PlantLog, StoreUnavailable } from '../../store/store.ts'
import { deliver, type Recipient } from '../delivery.ts'
import { BatchDelay } from './batch-delay.ts'

/** Callbacks for requests. `handedOver`: from now on the entry may be added, even if no outcome arrives. */
export type Adder<T> = Recipient<T> & {
  handedOver(waiting: T): void
  answer(outcome: Outcome, waiting: T, entry: Entry): void
}

const plantBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

type Pending<T> = { entry: Entry; waiting: T; deadlineMs: number }

export class GroupCommit<T> {
  readonly #log: PlantLog
  readonly #adder: Adder<T>
  readonly #delay = new BatchDelay()
  readonly #countPlants: Observe
  readonly #countCommit: Observe
  #line: Pending<T>[] = []
  #committing = false

  constructor(log: PlantLog, adder: Adder<T>, meter: Meter = noMeter) {
    this.#log = log
    this.#adder = adder
    meter.gauge('plant_store_plants_waiting', 'Plants that wait for the next batch.', () => this.#line.length)
    this.#countPlants = meter.histogram('plant_store_batch_plants', 'Plants in a batch.', plantBounds)
    const name = 'plant_store_commit_duration_seconds'
    const help = 'Time from handing a batch to the database to its outcome.'
    this.#countCommit = meter.histogram(name, help, secondBounds, 'outcome', ['committed', 'failed'])
  }

  /**
   * Adds an entry to the next batch; `waiting` is answered once it is on stable storage. An entry whose request has
   * ended before the batch begins is not added. `deadlineMs`: time of `performance.now()` at which the store gives up.
   * Throws StoreUnavailable.
   */
  append(entry: Entry, waiting: T, deadlineMs: number): void {
    if (this.#line.length >= maxWaitingPlants)
      throw new StoreUnavailable('overloaded', 'too many plants are waiting')
    this.#line.push({ entry, waiting, deadlineMs })
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
  #takeBatch(): Pending<T>[] {
    const line = this.#line.filter(({ waiting }) => this.#adder.waits(waiting))
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
  #giveUp(batch: Pending<T>[], error: unknown): void {
    const soonMs = performance.now() + shortestAttemptMs
    const [younger, late] = [[], []] as [Pending<T>[], Pending<T>[]]
    for (const one of batch) (one.deadlineMs < soonMs ? late : younger).push(one)
    const isTriedAgain =
      late.length > 0 && error instanceof StoreUnavailable && error.outcome === 'nothing-added'
    this.#fail(isTriedAgain ? late : batch, error)
    if (isTriedAgain) this.#line.unshift(...younger)
  }

  #fail(batch: Pending<T>[], error: unknown): void {
    for (const { waiting } of batch) if (this.#adder.waits(waiting)) this.#adder.fail(error, waiting)
  }

  async #commit(batch: Pending<T>[]): Promise<void> {
    let outcomes: Outcome[]
    this.#countPlants(batch.length)
    const startMs = performance.now()
    const count = (outcome: string) => this.#countCommit((performance.now() - startMs) / 1000, outcome)
    try {
      for (const { waiting } of batch) this.#adder.handedOver(waiting)
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
    batch.forEach(({ waiting, entry }, index) => {
      deliver(this.#adder, waiting, () => this.#adder.answer(outcomes[index] as Outcome, waiting, entry))
    })
  }
}

/** The store must return one outcome per entry. */
function miscounted(outcomes: Outcome[], batch: unknown[]): StoreUnavailable {
  const message = `the store gave ${outcomes.length} outcomes for ${batch.length} plants`
  return new StoreUnavailable('unknown', message)
}
