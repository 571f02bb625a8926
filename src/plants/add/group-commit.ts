// Group commit: requests that arrive while a batch is being committed form the next one, so that one wait for stable
// storage serves them all.
import { maxWaitingPlants, shortestAttemptMs } from '../../limits.ts'
import type { TimeSlices } from '../../runtime/time-slices.ts'
import { type Entry, type Outcome, type PlantLog, StoreUnavailable } from '../../store/store.ts'
import { BatchDelay } from './batch-delay.ts'
import { Delivery, type Recipient } from './delivery.ts'

/** A request that waits for its entry to be committed. `handedOver`: from now on it may be added, whatever is heard of it. */
export type Adder<T> = Recipient<Outcome, T> & { handedOver(waiting: T): void }

type Pending<T> = { entry: Entry; waiting: T; deadlineMs: number }

export class GroupCommit<T> {
  readonly #log: PlantLog
  readonly #adder: Adder<T>
  readonly #delivery: Delivery<Outcome, T>
  readonly #delay = new BatchDelay()
  #line: Pending<T>[] = []
  #committing = false

  constructor(log: PlantLog, adder: Adder<T>, slices: TimeSlices) {
    this.#log = log
    this.#adder = adder
    this.#delivery = new Delivery(adder, slices)
  }

  /** Number of plants that wait for the next batch. */
  get waiting(): number {
    return this.#line.length
  }

  /**
   * Has `waiting` answered once the entry is on stable storage. An entry that nobody waits for any more when its turn
   * comes is not added. `deadlineMs`, of `performance.now()`: the store gives up then. Throws StoreUnavailable.
   */
  append(entry: Entry, waiting: T, deadlineMs: number): void {
    if (this.#line.length >= maxWaitingPlants)
      throw new StoreUnavailable('overloaded', 'too many plants are waiting')
    this.#line.push({ entry, waiting, deadlineMs })
    this.#delay.noteWaiting(this.#line.length)
    if (this.#committing) return
    this.#committing = true
    void this.#commitAll()
  }

  async #commitAll(): Promise<void> {
    let answered = 0
    let commitMs = 0
    while (this.#line.length > 0) {
      // Clients who were just answered tend to come back at once.
      await this.#delay.wait(answered + this.#line.length, commitMs)
      const batch = this.#takeBatch()
      const startMs = performance.now()
      if (batch.length > 0) await this.#commit(batch)
      commitMs = performance.now() - startMs
      answered = batch.length
    }
    this.#committing = false
  }

  /** Everyone in line; but one whose time is nearly up would have the whole batch given up with it. */
  #takeBatch(): Pending<T>[] {
    const line = this.#line.filter(({ waiting }) => this.#adder.waits(waiting))
    this.#line = []
    const soonMs = performance.now() + shortestAttemptMs
    const batch = line.filter(({ deadlineMs }) => deadlineMs >= soonMs)
    if (batch.length < line.length) {
      const error = new StoreUnavailable('nothing-added', 'the time was up before the turn of a plant came')
      for (const { waiting, deadlineMs } of line) if (deadlineMs < soonMs) this.#delivery.fail(error, waiting)
    }
    return batch
  }

  async #commit(batch: Pending<T>[]): Promise<void> {
    let outcomes: Outcome[]
    try {
      for (const { waiting } of batch) this.#adder.handedOver(waiting)
      outcomes = await this.#log.append(
        batch.map(({ entry }) => entry),
        Math.min(...batch.map(({ deadlineMs }) => deadlineMs)),
      )
      checkCount(outcomes, batch)
    } catch (error) {
      for (const { waiting } of batch) this.#delivery.fail(error, waiting)
      return
    }
    batch.forEach(({ waiting }, index) => {
      this.#delivery.give(outcomes[index] as Outcome, waiting)
    })
  }
}

/** The store must return one outcome per entry. */
function checkCount(outcomes: Outcome[], batch: unknown[]): void {
  if (outcomes.length !== batch.length)
    throw new StoreUnavailable(
      'unknown',
      `the store gave ${outcomes.length} outcomes for ${batch.length} plants`,
    )
}
