// What a signal to end means: nothing is finished while the service starts; later balancers are given time to notice that
// it is not ready.

/** A signal that comes so soon after the first is the same one: a process group and a launcher both pass it on. */
const echoMs = 500
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Has a signal end the process at once, until the function that it returns is called. The first process of a container
 * hears only of signals that it listens to.
 */
export function endAtOnce(): () => void {
  const end = () => process.exit(0)
  for (const signal of signals) process.on(signal, end)
  return () => {
    for (const signal of signals) process.off(signal, end)
  }
}

/** Takes all signals from here on, and resolves after `delayMs`, or when a second signal says to be quick. */
export async function waitForDrain(delayMs: number, now = () => performance.now()): Promise<void> {
  const over = Promise.withResolvers<void>()
  const startMs = now()
  const hurry = () => {
    if (now() - startMs > echoMs) over.resolve()
  }
  // Whoever listened would end the process at once: the end comes in time without that.
  for (const signal of signals) process.removeAllListeners(signal).on(signal, hurry)
  const timer = setTimeout(over.resolve, delayMs)
  await over.promise
  clearTimeout(timer)
}
