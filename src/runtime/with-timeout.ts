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
