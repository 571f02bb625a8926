// Reads with a time-out, shared by concurrent callers, so that a store that does not answer is not asked again and
// again.

import { withTimeout } from '../../runtime/with-timeout.ts'

/** Makes a function that resolves to what `read` returns, or to undefined when it fails or times out. */
export function makeInTime<T>(read: () => T | Promise<T>, timeoutMs: number): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined

  // The store logs its failures itself.
  const begin = () =>
    Promise.resolve()
      .then(read)
      .catch(() => undefined)
      .finally(() => {
        pending = undefined
      })

  return async () => {
    pending ??= begin()
    return await withTimeout(pending, timeoutMs, () => undefined)
  }
}
