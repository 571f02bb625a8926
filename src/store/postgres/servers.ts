// All connections of this process follow one server of the cluster, on one timeline. If one of them finds that another
// server has taken over, the others leave the old one before they are used again.
import { setTimeout as sleep } from 'node:timers/promises'
import { makeOutage, type Outage } from '../../outage.ts'
import type { OpenOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { withTimeout } from '../in-time.ts'
import { failureOf, mostTelling } from './failures.ts'
import { Session } from './session.ts'
import { prepareStore } from './tables.ts'
import { attemptMs, longestPauseMs, pauseMs } from './time-outs.ts'

/** The purpose of a connection; each has one. */
export type Role = 'head' | 'look-up' | 'writer' | `read-${number}`

/** Log messages about connections. The error handler logs the requests that fail. */
const words = {
  failed: 'a connection to the database was lost',
  recovered: 'the database is connected again',
}

/** Factor by which each pause between attempts to connect grows. */
const pauseGrowth = 1.2

export class Servers {
  readonly #urls: string[]
  readonly #options: OpenOptions
  readonly #outage: Outage
  readonly #closing = new AbortController()
  /** The origin that is followed. */
  #followed: string | undefined
  /** The last pause between two attempts to connect, while there is no server; otherwise 0. */
  #pauseMs = 0
  #nextAttemptMs = 0
  /** The one attempt to connect that is running while there is no server. */
  #scout: Promise<Session> | undefined
  #hasWarned = false
  /** True for a read-only store: reading all of it may take long. */
  readonly isReading: boolean
  /** The store's id, once a first connection was made. */
  storeId: string | undefined

  /** `urls`: one per server of the cluster. */
  constructor(urls: string[], options: OpenOptions) {
    this.#urls = urls
    this.#options = options
    this.#outage = makeOutage(options.logger, words)
    this.isReading = options.mode === 'read'
  }

  follows({ origin }: Session): boolean {
    return origin === this.#followed
  }

  /**
   * Makes a session. While there is no server, only one attempt at a time looks for one, and all that wait share its
   * failure.
   */
  async connect(role: Role): Promise<Session> {
    while (this.#scout) await this.#scout
    if (this.#pauseMs === 0) return this.#connect(role)
    this.#scout = sleep(Math.max(0, this.#nextAttemptMs - performance.now()))
      .then(() => this.#connect(role))
      .finally(() => (this.#scout = undefined))
    return this.#scout
  }

  /** Connects to all servers at once and keeps the first acceptable one, so that a frozen server delays nothing. */
  async #connect(role: Role): Promise<Session> {
    if (this.#closing.signal.aborted) throw new StoreRefused('the store is closed')
    const before = this.#followed
    const sessions = this.#urls.map((url) => new Session(url, this.#closing.signal))
    const names = sessions.map(({ server }) => server)
    const makeError = () => new Error(`${names}: no server was ready within ${attemptMs} ms`)
    const timeoutMs = this.isReading || role === 'writer' ? 0 : attemptMs
    const admitted = sessions.map((session) => this.#admit(session, timeoutMs))
    try {
      const winner = await withTimeout(Promise.any(admitted), attemptMs, makeError)
      this.#follow(winner, before)
      for (const other of sessions) if (other !== winner) other.destroy()
      this.#pauseMs = 0
      this.#outage.reportRecovery()
      return winner
    } catch (error) {
      for (const session of sessions) session.destroy()
      const failure = error instanceof AggregateError ? mostTelling(error.errors) : (error as Error)
      // Pauses grow with the outage, and are random, so that replicas do not reconnect at the same moment.
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * pauseGrowth, pauseMs), longestPauseMs)
      this.#nextAttemptMs = performance.now() + this.#pauseMs * (1 - Math.random() / 2)
      this.reportFailure(failure, role)
      throw failure
    }
  }

  /** Resolves once a session can be trusted: its server has this store and, to write, its log is on the standbys. */
  async #admit(session: Session, timeoutMs: number): Promise<Session> {
    try {
      // If no primary is found, a standby is good enough for reading: a URL may name only a standby.
      const access = this.isReading ? (this.#pauseMs > 0 ? 'any' : 'primary') : 'write'
      await session.open(access, timeoutMs)
      // A server that was restored from a backup may have another store, or none.
      const isFirst = this.storeId === undefined
      const id = await prepareStore(session, isFirst ? this.#options : { ...this.#options, create: false })
      this.storeId ??= id
      if (id !== this.storeId) throw new StoreRefused(`it contains a different store (${id})`)
      if (this.isReading) return session
      await session.passBarrier(this.#pauseMs > 0)
      return session
    } catch (error) {
      throw failureOf(session.server, error as Error)
    }
  }

  /** `before`: the origin that was followed when the attempt began. */
  #follow({ origin, server }: Session, before: string | undefined): void {
    if (origin === this.#followed) return
    // Two connections found two primaries in the same moment.
    if (before !== this.#followed)
      throw new Error(`switched from ${server} to another server in the meantime`)
    // A standby may lack what was read so far.
    if (this.#followed && this.isReading)
      throw new StoreRefused(`${server} is not the server that this command was reading from`)
    if (this.#followed) this.#options.logger.warn({ server, origin }, 'now using another database server')
    this.#followed = origin
  }

  /** Reports a connection that was lost or failed. Before the first one was made, warns only once. */
  reportFailure(error: Error, role: Role): void {
    if (this.#closing.signal.aborted) return
    if (this.#followed) this.#outage.reportFailure(error, { role })
    else if (!this.#hasWarned)
      this.#options.logger.warn({ reason: error.message }, 'cannot connect to the database yet')
    this.#hasWarned = true
  }

  /** Ends all sessions; what runs on them rejects. */
  close(): void {
    this.#closing.abort()
    this.#followed = undefined
  }
}
