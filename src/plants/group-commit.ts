// Group commit: plants that arrive during a commit form the next batch, and share one wait for stable storage.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Meter, noMeter, secondBounds } from '../metrics.ts'
import type { Entry, Outcome, PlantLog } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime, storeLimitMs } from '../store/in-time.ts'

/** Maximum number of plants that wait for the next batch. */
const maxWaiting = 4096
/**
 * A plant with a closer deadline is not added, because its deadline would apply to the whole batch. More than an engine
 * requires, because some time passes before its attempt.
 */
const shortestAttemptMs = 700
/** Maximum wait for a larger batch. */
const maxGatherMs = 3
/** The resolution of timers; a turn of the event loop is shorter. */
const timerMs = 1
/** Time after the deadline for the store to report its own time-out, which has more detail. */
const graceMs = 200
const plantBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

/** `deadlineMs` (of `performance.now()`): when the store gives up; `isGone`: true after the client disconnected. */
type Waiter = { deadlineMs: number; isGone: () => boolean }

type Waiting = Waiter & { entry: Entry } & Omit<PromiseWithResolvers<Outcome>, 'promise'>

/**
 * Returns `append`, which adds an entry to the next batch, and resolves to its outcome once it is on stable storage. It
 * does not add an entry if the client disconnects before the batch begins. It rejects with StoreUnavailable:
 * `overloaded` if too many plants wait, `nothing-added`, or `unknown`.
 */
export function shareCommits(log: PlantLog, meter: Meter = noMeter) {
  const queue: Waiting[] = []
  let isCommitting = false
  meter.gauge('plant_store_plants_waiting', 'Plants waiting for the next batch.', () => queue.length)
  const countPlants = meter.histogram('plant_store_batch_plants', 'Plants in a batch.', plantBounds)
  const help = 'Time from handing a batch to the database to its outcome.'
  const results = ['committed', 'failed']
  const countCommit = meter.histogram('plant_store_commit_duration_seconds', help, secondBounds, results)

  return function append(entry: Entry, waiter: Waiter): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (queue.length >= maxWaiting) throw new StoreUnavailable('overloaded', 'too many plants are waiting')
      queue.push({ ...waiter, entry, resolve, reject })
      if (!isCommitting) void commitAll()
    })
  }

  async function commitAll(): Promise<void> {
    isCommitting = true
    /** Plants in the last batch, and the duration of its commit. */
    let [answered, commitMs] = [0, 0]
    while (queue.length > 0) {
      await gather(answered + queue.length, commitMs)
      const batch = refuseLate(queue.splice(0))
      commitMs = batch.length > 0 ? await commit(batch) : 0
      answered = batch.length
    }
    isCommitting = false
  }

  /**
   * Waits for `expected` plants: those of this turn of the event loop, and those of clients that just received a
   * response and may send the next plant at once. Stops when none arrives for a moment, or after the duration of the
   * last commit, at most `maxGatherMs`.
   */
  async function gather(expected: number, commitMs: number): Promise<void> {
    const endMs = performance.now() + Math.min(commitMs, maxGatherMs)
    const isQuick = commitMs < timerMs
    const maxIdleWaits = isQuick ? 2 : 1
    let idleWaits = 0
    do {
      const present = queue.length
      await (isQuick ? new Promise(setImmediate) : sleep(timerMs))
      idleWaits = queue.length > present ? 0 : idleWaits + 1
    } while (queue.length < expected && idleWaits < maxIdleWaits && performance.now() < endMs)
  }

  /** Commits a batch, and settles its plants. Resolves to the duration in milliseconds. */
  async function commit(batch: Waiting[]): Promise<number> {
    const entries = batch.map(({ entry }) => entry)
    const deadlineMs = Math.min(...batch.map(({ deadlineMs }) => deadlineMs))
    const startMs = performance.now()
    let result = 'failed'
    countPlants(batch.length)
    try {
      const limitMs = Math.min(deadlineMs - startMs, storeLimitMs) + graceMs
      const outcomes = await inTime(log.append(entries, { deadlineMs }), limitMs, 'unknown')
      result = 'committed'
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] as Outcome)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    const commitMs = performance.now() - startMs
    countCommit(commitMs / 1000, result)
    return commitMs
  }
}

/** Returns the plants that can still be added in time; rejects the others. */
function refuseLate(waiting: Waiting[]): Waiting[] {
  const soonMs = performance.now() + shortestAttemptMs
  return waiting.filter(({ isGone, deadlineMs, reject }) => {
    const hasLeft = isGone()
    if (!hasLeft && deadlineMs >= soonMs) return true
    const reason = hasLeft ? 'the client disconnected' : 'the deadline is too close'
    // A disconnected client is not a store failure, and the access log reports it.
    reject(new StoreUnavailable('nothing-added', `not added: ${reason}`, { isQuiet: hasLeft }))
    return false
  })
}
