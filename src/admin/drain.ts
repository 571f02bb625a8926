// The time between the word that this process is to end and the end: balancers notice meanwhile that it is not ready.

/** A signal that comes so soon after the first is the same one: a process group and a launcher both pass it on. */
const echoMs = 500
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']

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
