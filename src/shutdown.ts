// Ends the process gracefully on a signal or an uncaught error.

/** Why the process ends: a signal or an uncaught error. */
export type Cause = { signal?: NodeJS.Signals; err?: unknown }

/** A second signal within this time is a duplicate: the process group, the launcher and npm may each send one. */
const echoMs = 500

/**
 * Calls `finish` on SIGTERM, SIGINT, SIGHUP or an uncaught error. Exits when it resolves: with 0 after a signal, with 1
 * after an error; or with 1 after `limitMs`. A second signal aborts `hurry`.
 */
export function finishOnSignal(finish: (cause: Cause, hurry: AbortSignal) => Promise<void>, limitMs: number) {
  const hurry = new AbortController()
  let startMs: number | undefined

  async function end(cause: Cause): Promise<void> {
    startMs = performance.now()
    setTimeout(() => process.exit(1), limitMs).unref()
    await finish(cause, hurry.signal).catch(() => process.exit(1))
    process.exit(cause.err ? 1 : 0)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (startMs === undefined) void end({ signal })
    else if (performance.now() - startMs > echoMs) hurry.abort()
  }
  const onError = (err: unknown) => {
    if (startMs === undefined) void end({ err })
    else process.exit(1)
  }
  // Process 1 of a container receives only signals that have a listener, so the listeners are never removed.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal)
  process.on('uncaughtException', onError)
}
