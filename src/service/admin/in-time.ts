// Answers that are waited for only so long. Whoever asks while one is on its way shares it: a store that does not answer
// is not asked over and over again.

import { withTimeout } from '../../runtime/with-timeout.ts'

/** Makes a function that resolves to what `read` gives, or to undefined when that fails or takes too long. */
export function makeInTime<T>(read: () => T | Promise<T>, timeoutMs: number): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined

  // Why it failed is in the store's own log.
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
