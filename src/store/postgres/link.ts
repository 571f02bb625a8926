// A connection to the server that is followed, made on demand and again after a failure: to the same server, or to the
// one that was promoted.
import { storeLimitMs } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import { fail, isFinal, ServerFailure } from './failures.ts'
import type { Role, Servers } from './servers.ts'
import type { Session } from './session.ts'
import { attemptMs, shortestAttemptMs, withTimeout } from './time-outs.ts'

/** The most pieces of work in progress on a connection. */
export const maxRunning = 1000

type Work<T> = (session: Session) => Promise<T>

export class Link {
  readonly #servers: Servers
  readonly #role: Role
  #session: Session | undefined
  #opening: Promise<Session> | undefined
  /** Number of running pieces of work. */
  running = 0

  constructor(servers: Servers, role: Role) {
    this.#servers = servers
    this.#role = role
  }

  /**
   * Runs `work` on the connection, which is shared. After a failure the connection is dropped and the work repeated on
   * a new one: `work` must be safe to repeat. Rejects with the last failure at the deadline (of `performance.now()`) or
   * when the server refuses the request, and at once if too much is running.
   */
  async run<T>(work: Work<T>, deadlineMs = performance.now() + storeLimitMs): Promise<T> {
    if (this.running >= maxRunning)
      throw new StoreUnavailable('overloaded', `${this.running} queries are in progress already`)
    this.running++
    try {
      return await this.#repeat(work, deadlineMs)
    } finally {
      this.running--
    }
  }

  /** Drops the connection: work in progress is repeated on a new one, behind a barrier. */
  renew(): void {
    this.#session?.destroy()
    this.#session = undefined
  }

  async #repeat<T>(work: Work<T>, deadlineMs: number): Promise<T> {
    let failure: unknown = new Error('the time was up before its turn came or a server was connected')
    const tooLate = () => {
      throw failure
    }
    while (deadlineMs - performance.now() >= shortestAttemptMs) {
      try {
        const session = await this.#open(deadlineMs, tooLate)
        return await this.#attempt(session, work, deadlineMs)
      } catch (error) {
        if (isFinal(error)) throw error
        failure = error
        await this.#servers.pause()
      }
    }
    throw failure
  }

  async #open(deadlineMs: number, tooLate: () => never): Promise<Session> {
    const session = this.#session
    if (session && this.#servers.follows(session)) return session
    session?.destroy()
    this.#opening ??= this.#connect()
    return withTimeout(this.#opening, deadlineMs - performance.now(), tooLate)
  }

  async #connect(): Promise<Session> {
    try {
      this.#session = await this.#servers.connect(this.#role)
      return this.#session
    } finally {
      this.#opening = undefined
    }
  }

  async #attempt<T>(session: Session, work: Work<T>, deadlineMs: number): Promise<T> {
    const timeoutMs = Math.min(attemptMs, deadlineMs - performance.now())
    const tooLate = fail(`no answer in ${Math.round(timeoutMs)} ms`)
    try {
      return await withTimeout(work(session), timeoutMs, tooLate)
    } catch (error) {
      const failure = new ServerFailure(session.server, error as Error)
      // Other work on the session may have failed before.
      if (session === this.#session) {
        this.renew()
        this.#servers.reportFailure(failure, this.#role)
      }
      throw failure
    }
  }
}
