// One look at the head of the log for all requests that wait at one moment.
import type { PlantLog } from '../store/store.ts'

/**
 * Makes a `head()` whose answer was read after the call, so that it counts every plant acknowledged before it, and
 * which all callers of one turn of the event loop, and all that come while a slow look is under way, share.
 */
export function shareHead(log: PlantLog): () => Promise<number> {
  let next: Promise<number> | undefined
  let current: Promise<unknown> = Promise.resolve()

  async function look(previous: Promise<unknown>): Promise<number> {
    await new Promise(setImmediate)
    await previous
    // From here on, whoever asks came too late for this look.
    next = undefined
    return log.head()
  }

  return () => {
    if (next) return next
    next = look(current)
    current = next.catch(() => {})
    return next
  }
}
