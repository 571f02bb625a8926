// Waiting, but only so long.

/**
 * Resolves or rejects as `work` does; when that takes longer than `ms`, to what `late` returns, or with what it throws. The
 * work goes on: nobody hears of it any more.
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
