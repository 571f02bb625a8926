// All connections of this process follow one server of the cluster, on one timeline. If one of them finds that another
// server has taken over, the others leave the old one before they are used again.
import { setTimeout as sleep } from 'node:timers/promises'
import { makeOutage, type Outage } from '../../outage.ts'
import type { OpenOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { withTimeout } from '../in-time.ts'
import { failureOf, mostTelling } from './failures.ts'
import { Session } from './session.ts'
import { findStore, prepareStore } from './tables.ts'
import { attemptMs, longestPauseMs, pauseMs } from './time-outs.ts'

/** The purpose of a connection; each has one. */
export type Role = 'head' | 'look-up' | 'writer' | `read-${number}`

/** Log messages about connections. The error handler logs the requests that fail. */
const words = {
  failed: 'a connection to the database was lost',
  recovered: 'the database is connected again',
}

const isMissing = ({ cause }: Partial<Error> = {}) => cause instanceof StoreRefused && cause.isMissing

/** Time that the other servers have to answer after one did. */
const settleMs = 500
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

  async #connect(role: Role): Promise<Session> {
    if (this.#closing.signal.aborted) throw new StoreRefused('the store is closed')
    const before = this.#followed
    const sessions: Session[] = []
    const names = () => sessions.map(({ server }) => server).slice(0, this.#urls.length)
    const makeError = () => new Error(`${names()}: no server was ready within ${attemptMs} ms`)
    try {
      const winner = await withTimeout(this.#find(role, sessions), attemptMs, makeError)
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

  /** Finds a session, and adds all that it opens to `sessions`. A store is made only if no server can have one. */
  async #find(role: Role, sessions: Session[]): Promise<Session> {
    try {
      return await this.#openAll(role, sessions, this.#urls.length === 1)
    } catch (error) {
      const failures: Error[] = error instanceof AggregateError ? error.errors : []
      const empty = sessions.filter((_, n) => isMissing(failures[n]))
      if (!this.#options.create || empty.length === 0) throw error
      const standbys = sessions.filter(({ isStandby }) => isStandby)
      const found = await Promise.all(standbys.map(findStore))
      // Two hosts may lead to the same server.
      const isOneServer = new Set(empty.map(({ origin }) => origin)).size === 1
      const haveAnswered = empty.length + standbys.length === sessions.length
      if (isOneServer && haveAnswered && found.every((id) => id === undefined))
        return this.#openAll(role, sessions, true)
      const reasons = failures.map(({ message }) => message).join('; ')
      throw new Error(`a store is created only if all servers but one are standbys without one: ${reasons}`)
    }
  }

  /** Opens a session with each server at once. Resolves to the first that can be trusted. */
  #openAll(role: Role, sessions: Session[], mayCreate: boolean): Promise<Session> {
    // If no primary is found, a standby is good enough for reading: a URL may name only a standby.
    const access = this.isReading ? (this.#pauseMs > 0 ? 'any' : 'primary') : 'write'
    const timeoutMs = this.isReading || role === 'writer' ? 0 : attemptMs
    const all = this.#urls.map((url) => new Session(url, this.#closing.signal))
    sessions.push(...all)
    const opening = all.map((session) => session.open(access, timeoutMs))
    const settled = Promise.allSettled(opening)
    const admit = async (session: Session, n: number) => {
      try {
        await opening[n]
        await Promise.race([settled, sleep(settleMs, undefined, { ref: false })])
        this.#refuseDeposed(session, all)
        return await this.#admit(session, mayCreate)
      } catch (error) {
        throw failureOf(session.server, error as Error)
      }
    }
    return Promise.any(all.map(admit))
  }

  /** Throws if a server of the same cluster is, or was, on a later timeline. A restart accepts the only server. */
  #refuseDeposed({ origin, server }: Session, all: Session[]): void {
    const [timeline = '', system] = origin.split('/')
    const others = this.#urls.length === 1 ? [] : [this.#followed ?? '', ...all.map((one) => one.origin)]
    for (const [latest = '', same] of others.map((one) => one.split('/')))
      if (same === system && latest > timeline && timeline !== '')
        throw new Error(`${server} was deposed: it is on timeline ${timeline}, and ${latest} was seen`)
  }

  /** Resolves once a session can be trusted: its server has this store and, to write, its log is on the standbys. */
  async #admit(session: Session, mayCreate: boolean): Promise<Session> {
    // A server that was restored from a backup may have another store, or none.
    const create = this.#options.create === true && mayCreate && this.storeId === undefined
    const id = await prepareStore(session, { ...this.#options, create })
    this.storeId ??= id
    if (id !== this.storeId) throw new StoreRefused(`it contains a different store (${id})`)
    if (!this.isReading) await session.passBarrier(this.#pauseMs > 0)
    return session
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
