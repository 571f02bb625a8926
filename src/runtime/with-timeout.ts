// Waiting with a time-out.

/**
 * Settles like `work`, or after `ms` milliseconds with what `late` returns or throws. The work itself goes on; its
 * outcome is ignored then.
 */
export async function withTimeout<T, L = never>(work: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    return await Promise.race([work, promise.then(late)])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Makes a function that resolves to what `read` returns, or to undefined when it fails or times out. Concurrent callers
 * share a read, so that a store that does not answer is not asked again and again.
 */
export function makeInTime<T>(read: () => T | Promise<T>, timeoutMs: number): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined
  return async () => {
    // The store logs its failures itself.
    pending ??= Promise.resolve()
      .then(read)
      .catch(() => undefined)
      .finally(() => {
        pending = undefined
      })
    return await withTimeout(pending, timeoutMs, () => undefined)
  }
}
