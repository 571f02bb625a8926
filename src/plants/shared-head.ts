// Reads the head of the log once for all lists that wait for it.
import type { Head, PlantLog } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime } from '../store/in-time.ts'

/** Maximum number of lists that wait for one read of the head. */
const maxWaiting = 10_000

/** Returns `readHead(positions)`, which reads the head of `log`. All lists that wait for the next read share it. */
export function shareHead(log: PlantLog) {
  /** The next read. Lists can join it until it begins. */
  let next: ReturnType<typeof prepare> | undefined
  /** Resolves when the read in progress has ended. */
  let current: Promise<unknown> | undefined

  /**
   * Resolves to the head and the marks of `positions`, read after this call, so that the head includes every plant
   * acknowledged before. Throws or rejects with StoreUnavailable.
   */
  return function readHead(positions: readonly number[]): Promise<Head> {
    next ??= prepare()
    if (next.count++ >= maxWaiting)
      throw new StoreUnavailable('overloaded', 'too many lists wait for the head of the log')
    for (const position of positions) next.positions.add(position)
    // `read` limits only its own query: the wait for the current one needs a limit, too.
    return current ? inTime(next.head) : next.head
  }

  /** Begins to wait at once. */
  function prepare() {
    const positions = new Set<number>()
    return { count: 0, positions, head: read(positions) }
  }

  /** Waits for the current read, which may have begun before the request arrived, and may therefore be stale for it. */
  async function read(positions: Set<number>): Promise<Head> {
    // Requests that arrive in the same turn of the event loop share the read.
    await (current ?? new Promise(setImmediate))
    next = undefined
    const head = log.head([...positions])
    if (!(head instanceof Promise)) return head
    current = Promise.allSettled([head]).then(() => (current = undefined))
    return inTime(head)
  }
}
