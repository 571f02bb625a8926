// A connection to the server that is followed, made on demand and again after a failure: to the same server, or to the
// one that was promoted.
import { setTimeout as sleep } from 'node:timers/promises'
import { attemptMs, maxLookups, shortestAttemptMs, storeLimitMs } from '../../limits.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import { StoreRefused } from '../store.ts'
import { isFinal, ServerFailure } from './failures.ts'
import type { Connection, Role, Servers } from './servers.ts'
import type { Session } from './session.ts'

const pauseMs = 50

type Work<T> = (session: Session) => Promise<T>

export class Link {
  readonly #servers: Servers
  readonly #role: Role
  #connection: Connection | undefined
  #running = 0
  #closed = false

  constructor(servers: Servers, role: Role) {
    this.#servers = servers
    this.#role = role
  }

  /** Number of running pieces of work. */
  get running(): number {
    return this.#running
  }

  /**
   * Runs `work` on the connection, which is shared. After a failure the connection is dropped and the work repeated on
   * a new one: `work` must be safe to repeat. Rejects with the last failure at the deadline (of `performance.now()`) or
   * when the server refuses the request, and at once when too much is running.
   */
  async run<T>(work: Work<T>, deadlineMs = performance.now() + storeLimitMs): Promise<T> {
    if (this.#running >= maxLookups) throw new Error(`${this.#running} queries are under way already`)
    this.#running++
    try {
      return await this.#repeat(work, deadlineMs)
    } finally {
      this.#running--
    }
  }

  async #repeat<T>(work: Work<T>, deadlineMs: number): Promise<T> {
    let failure: unknown = new Error('the time was up before the turn came')
    while (deadlineMs - performance.now() >= shortestAttemptMs) {
      try {
        return await this.#attempt(work, deadlineMs)
      } catch (error) {
        if (isFinal(error)) throw error
        failure = error
        await sleep(pauseMs)
      }
    }
    throw failure
  }

  async #attempt<T>(work: Work<T>, deadlineMs: number): Promise<T> {
    const connection = this.#connect()
    const { opened, late } = connection
    if (!connection.session) await withTimeout(opened, deadlineMs - performance.now(), late)
    const session = connection.session as Session
    const timeoutMs = Math.min(attemptMs, deadlineMs - performance.now())
    const unanswered = () => {
      throw new Error(`no answer in ${Math.round(timeoutMs)} ms`)
    }
    try {
      return await withTimeout(work(session), timeoutMs, unanswered)
    } catch (error) {
      const failure = new ServerFailure(session.server, error as Error)
      this.#giveUp(connection, failure)
      throw failure
    }
  }

  #connect(): Connection {
    if (this.#closed) throw new StoreRefused('the store is closed')
    const session = this.#connection?.session
    if (session && !this.#servers.follows(session.origin)) this.#drop()
    if (this.#connection) return this.#connection
    const connection = this.#servers.connect(this.#role)
    connection.opened.catch((error) => this.#giveUp(connection, error))
    this.#connection = connection
    return connection
  }

  /** Several pieces of work may report the failure of one connection. */
  #giveUp(connection: Connection, failure: Error): void {
    if (connection !== this.#connection) return
    this.#drop()
    this.#servers.reportFailure(failure, this.#role)
  }

  #drop(): void {
    this.#connection?.destroy()
    this.#connection = undefined
  }

  /** Closes the connection; running work rejects. */
  close(): void {
    this.#closed = true
    this.#drop()
  }
}
