// Answers that are waited for only so long. Whoever asks while one is on its way shares it: a store that does not answer
// is not asked over and over again.

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
    const late = Promise.withResolvers<undefined>()
    const timer = setTimeout(late.resolve, timeoutMs, undefined)
    return await Promise.race([pending, late.promise]).finally(() => clearTimeout(timer))
  }
}
