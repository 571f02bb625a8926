// Long work: shows its progress, and can be interrupted.
import { onInterrupt } from './interrupt.ts'
import { Progress } from './progress.ts'

/** `describe` says, when the work was interrupted, what was done and how to go on. */
export type LongWorkOptions = { quiet?: boolean | undefined; describe: () => string }

/** Rejects with Interrupted when the work was interrupted, whatever the work itself threw. */
export async function doLongWork<T>(
  { quiet = false, describe }: LongWorkOptions,
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const progress = new Progress({ quiet })
  const { signal, release } = onInterrupt(() => {
    progress.end()
    return describe()
  })
  const ended = work(progress, signal).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
  return ended.finally(() => {
    progress.end()
    release()
  })
}
