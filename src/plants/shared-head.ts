// Reads the head of the log once for all lists that wait at one moment.
import type { Head, PlantLog } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime } from '../store/in-time.ts'

/** The most lists that may wait for one read of the head. */
const maxWaiting = 10_000

type HeadRead = { count: number; positions: Set<number>; head: Promise<Head> }

/** Makes `readHead`. */
export function shareHead(log: PlantLog) {
  /** The next read, which has not begun yet: more lists can still join it. */
  let next: HeadRead | undefined
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
    return next.head
  }

  function prepare(): HeadRead {
    const positions = new Set<number>()
    return { count: 0, positions, head: current ? inTime(read(positions)) : read(positions) }
  }

  /** Begins after the current read: that one may have begun before the request arrived, and so be stale for it. */
  async function read(positions: Set<number>): Promise<Head> {
    // Requests that were read in this turn of the event loop share the read.
    await (current ?? new Promise(setImmediate))
    next = undefined
    const head = log.head([...positions])
    if (!(head instanceof Promise)) return head
    const end = () => (current = undefined)
    current = head.then(end, end)
    return inTime(head)
  }
}
