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

/** `made`: the session, once it is open. */
type Made = Connection & { made?: Session }

export class Link {
  readonly #servers: Servers
  readonly #role: Role
  #connection: Made | undefined
  #running = 0
  #wasMade = false
  #closed = false

  constructor(servers: Servers, role: Role) {
    this.#servers = servers
    this.#role = role
    servers.onChange(() => this.#leave())
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
  async run<T>(
    work: (session: Session) => Promise<T>,
    deadlineMs = performance.now() + storeLimitMs,
  ): Promise<T> {
    if (this.#running >= maxLookups) throw new Error(`${this.#running} queries are under way already`)
    this.#running++
    try {
      return await this.#repeat(work, deadlineMs)
    } finally {
      this.#running--
    }
  }

  async #repeat<T>(work: (session: Session) => Promise<T>, deadlineMs: number): Promise<T> {
    let failure: unknown = new Error('the time was up before the turn came')
    for (;;) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs < shortestAttemptMs) throw failure
      try {
        return await this.#attempt(work, Math.min(attemptMs, leftMs))
      } catch (error) {
        if (isFinal(error)) throw error
        failure = error
        await sleep(pauseMs)
      }
    }
  }

  async #attempt<T>(work: (session: Session) => Promise<T>, timeoutMs: number): Promise<T> {
    if (this.#closed) throw new StoreRefused('the store is closed')
    this.#connection ??= this.#make()
    const connection = this.#connection
    let over = false
    const late = () => {
      over = true
      throw new Error(`no answer in ${Math.round(timeoutMs)} ms`)
    }
    const done = connection.session.then((session) => {
      // The caller already has a rejection.
      if (over) throw new Error('the time is up')
      return work(session)
    })
    const fail = (error: Error) => {
      const { made } = connection
      // Connecting has its own time-out, which may be longer than the time left for this work.
      if (!made) throw over ? new ServerFailure(connection.servers, error) : error
      const failure = new ServerFailure(made.server, error)
      this.#giveUp(connection, failure)
      throw failure
    }
    return withTimeout(done, timeoutMs, late).catch(fail)
  }

  #make(): Made {
    const connection: Made = this.#servers.connect(this.#role)
    const late = () => {
      throw new Error(`${connection.servers}: no session was ready in ${attemptMs} ms`)
    }
    withTimeout(connection.session, attemptMs, late).then(
      (session) => {
        connection.made = session
        if (this.#wasMade) this.#servers.reconnected()
        this.#wasMade = true
        this.#servers.reportSuccess()
        this.#leave()
      },
      (error) => this.#giveUp(connection, error),
    )
    return connection
  }

  #giveUp(connection: Made, error?: Error): void {
    connection.destroy()
    if (connection !== this.#connection) return
    this.#connection = undefined
    if (error && !this.#closed) this.#servers.reportFailure(error, this.#role)
  }

  #leave(): void {
    const made = this.#connection?.made
    // The change of servers is already logged.
    /* c8 ignore next 2: this connection was made while another one found the new server: no event says when */
    if (this.#connection && made && !this.#servers.follows(made.origin)) this.#giveUp(this.#connection)
  }

  /** Resolves when the connection is made. */
  async connect(): Promise<void> {
    await this.run(async () => {})
  }

  /** Closes the connection; running work rejects. */
  close(): void {
    this.#closed = true
    this.#connection?.destroy()
  }
}
