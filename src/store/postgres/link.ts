// A connection to the current server, opened on demand and reopened after a failure or a promotion.
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../errors.ts'
import { shareRun, storeLimitMs, withTimeout } from '../in-time.ts'
import { failureOf, isFinal } from './failures.ts'
import type { Role, Servers } from './servers.ts'
import type { Session } from './session.ts'
import { attemptMs, pauseMs, shortestAttemptMs } from './time-outs.ts'

/** The maximum number of concurrent jobs on a connection. */
export const maxRunning = 1000

type Work<T> = (session: Session) => Promise<T>

export type Link = ReturnType<typeof makeLink>

/** Creates a connection for one role, which `run` opens. It shares the choice of the server with all other roles. */
export function makeLink(servers: Servers, role: Role) {
  let current: Session | undefined
  let running = 0
  const connect = shareRun(() => servers.connect(role).then((session) => (current = session)))

  /** Drops the connection. Work in progress is repeated on a new one, after a barrier. */
  function drop(): void {
    current?.destroy()
    current = undefined
  }

  async function open(deadlineMs: number, makeError: () => unknown): Promise<Session> {
    if (current) await servers.checkTimelines()
    if (current && servers.follows(current)) return current
    current?.destroy()
    return withTimeout(connect(), deadlineMs - performance.now(), makeError)
  }

  async function attempt<T>(session: Session, work: Work<T>, deadlineMs: number): Promise<T> {
    const timeoutMs = Math.min(attemptMs, deadlineMs - performance.now())
    const makeError = () => new Error(`no response in ${Math.round(timeoutMs)} ms`)
    try {
      const working = work(session)
      const result = await (servers.isReading ? working : withTimeout(working, timeoutMs, makeError))
      // Changes on a server after the promotion of another one may be lost.
      if (!servers.follows(session)) throw new Error('another server has taken over')
      return result
    } catch (error) {
      const failure = failureOf(session.server, error as Error)
      // Other work on the session may already have reported the failure.
      if (session !== current) throw failure
      drop()
      servers.reportFailure(failure, role)
      throw failure
    }
  }

  async function repeat<T>(work: Work<T>, deadlineMs: number): Promise<T> {
    let failure: unknown = new Error('timed out before a connection was available')
    while (deadlineMs - performance.now() >= shortestAttemptMs) {
      try {
        const session = await open(deadlineMs, () => failure)
        // An attempt that cannot succeed would end the session of all other work.
        if (deadlineMs - performance.now() < shortestAttemptMs) break
        return await attempt(session, work, deadlineMs)
      } catch (error) {
        if (isFinal(error)) throw error
        failure = error
        await sleep(pauseMs)
      }
    }
    throw failure
  }

  return {
    /**
     * Runs `work` on the shared connection. After a failure, drops the connection and repeats the work on a new one:
     * `work` must be safe to repeat. Rejects with the last failure at the deadline (of `performance.now()`) or when the
     * request is refused, and at once if too many jobs are running.
     */
    async run<T>(work: Work<T>, deadlineMs = performance.now() + storeLimitMs): Promise<T> {
      if (running >= maxRunning)
        throw new StoreUnavailable('overloaded', `${running} queries are already in progress`)
      running++
      return repeat(work, deadlineMs).finally(() => running--)
    },
    drop,
    /** Number of running jobs. */
    running: () => running,
  }
}
