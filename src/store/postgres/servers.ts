// All connections of this process use one server of the cluster, on one timeline. If one of them detects that another
// server was promoted, the others reconnect before they are used again.
import { setTimeout as sleep } from 'node:timers/promises'
import { makeOutage } from '../../outage.ts'
import type { OpenOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { shareRun, withTimeout } from '../in-time.ts'
import { failureOf, pickFailure, standbyError } from './failures.ts'
import { endBarriers, leaseMs, makeLease, Session } from './session.ts'
import { createStore, type FoundStore, findStore } from './tables.ts'
import { attemptMs, longestPauseMs, pauseMs } from './time-outs.ts'

/** The purpose of a connection. */
export type Role = 'head' | 'look-up' | 'writer' | 'last-use' | `read-${number}`

/** Log messages about connections. The error handler logs the requests that fail. */
const messages = { failed: 'a connection to the database failed', recovered: 'the database is connected' }

/** Time to wait for the other servers after the first has responded. */
const settleMs = 500
/** Factor by which each pause between attempts to connect grows. */
const pauseGrowth = 1.2

/** True if `other` was seen on a later timeline of the same cluster. */
const isLater = (other: Session | undefined, { timeline, system }: Session) =>
  other?.system === system && (other.timeline ?? '') > (timeline ?? '')

/** Chooses the server to use, and opens sessions on it. */
export class Servers {
  readonly #urls: string[]
  readonly #options: OpenOptions
  readonly #outage: ReturnType<typeof makeOutage>
  readonly #closing = new AbortController()
  /** A session with the followed server; it may have ended. */
  #followed: Session | undefined
  /** During an outage, the last pause between two attempts to connect; otherwise 0. */
  #pauseMs = 0
  #nextAttemptMs = 0
  /** During an outage, the attempt to connect that is in progress. */
  #attempt: Promise<Session> | undefined
  /** A check of the timeline per server. Empty if the process never switches: read-only, or one server. */
  readonly #checks: (() => Promise<void>)[]
  /** True for a read-only store. Its queries have no time limit, because a command may read the whole store. */
  readonly isReading: boolean
  /** The store's id; undefined before the first connection. */
  storeId: string | undefined
  /** The schema of the store's tables. A copy of the store may be in another schema. */
  #schema: string | undefined

  /** `urls`: one per server of the cluster. */
  constructor(urls: string[], options: OpenOptions) {
    this.#urls = urls
    this.#options = options
    this.#outage = makeOutage(options.logger, messages)
    this.isReading = options.mode === 'read'
    this.#checks = this.isReading || urls.length === 1 ? [] : urls.map((url) => this.#makeCheck(url))
  }

  follows({ origin }: Session): boolean {
    return origin === this.#followed?.origin
  }

  /**
   * Checks all servers, at most once per `leaseMs`, and follows one on a later timeline. Waits only for an overdue
   * check, such as the first after a period without requests.
   */
  readonly checkTimelines = makeLease(() => {
    const checks = Promise.all(this.#checks.map((check) => check()))
    return Promise.race([checks, sleep(settleMs, undefined, { ref: false })])
  }, 2 * leaseMs)

  /**
   * Returns a function that checks the timeline of one server, in a session that does nothing else. Callers share a
   * check, because the session of a distant server may take longer to open than a caller waits.
   */
  #makeCheck(url: string): () => Promise<void> {
    let session: Session | undefined
    const check = async (): Promise<void> => {
      if (this.#closing.signal.aborted) return
      const kept = session
      try {
        session ??= new Session(url, this.#closing.signal)
        const answer: Promise<unknown> = kept ? kept.identify(attemptMs) : session.open(true, attemptMs)
        await withTimeout(answer, attemptMs, () => new Error('no response'))
        if (this.#followed && isLater(session, this.#followed)) this.#follow(session, this.#followed)
      } catch {
        // Ignore a server that does not respond. Retry once with a new session: the server may have restarted.
        session?.destroy()
        session = undefined
        if (kept) await check()
      }
    }
    return shareRun(check)
  }

  /** Opens a session. During an outage, one attempt runs at a time, and all callers share its failure. */
  async connect(role: Role): Promise<Session> {
    while (this.#attempt) await this.#attempt
    if (this.#pauseMs === 0) return this.#connect(role)
    this.#attempt = sleep(Math.max(0, this.#nextAttemptMs - performance.now()))
      .then(() => this.#connect(role))
      .finally(() => (this.#attempt = undefined))
    return this.#attempt
  }

  async #connect(role: Role): Promise<Session> {
    if (this.#closing.signal.aborted) throw new StoreRefused('the store is closed')
    const before = this.#followed
    const sessions: Session[] = []
    const names = () => sessions.map(({ server }) => server)
    const makeError = () => new Error(`${names()}: no server was ready within ${attemptMs} ms`)
    try {
      for (const url of this.#urls) sessions.push(new Session(url, this.#closing.signal))
      const winner = await withTimeout(this.#openAny(role, sessions), attemptMs, makeError)
      this.#follow(winner, before)
      for (const other of sessions) if (other !== winner) other.destroy()
      this.#pauseMs = 0
      this.#outage.reportRecovery()
      return winner
    } catch (error) {
      for (const session of sessions) session.destroy()
      const failure = error instanceof AggregateError ? pickFailure(error.errors) : (error as Error)
      // Back off, with jitter so that replicas do not reconnect at the same moment.
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * pauseGrowth, pauseMs), longestPauseMs)
      this.#nextAttemptMs = performance.now() + this.#pauseMs * (1 - Math.random() / 2)
      this.reportFailure(failure.message, role)
      throw failure
    }
  }

  /**
   * Opens all sessions at once. Resolves to the first trusted session. A session with another server than the followed
   * one waits for servers that may be better, and must meet more conditions.
   */
  #openAny(role: Role, all: Session[]): Promise<Session> {
    const timeoutMs = this.isReading || role === 'writer' ? 0 : attemptMs
    const opening = all.map((session) => session.open(this.isReading, timeoutMs))
    const settled = Promise.allSettled(opening)
    const patience = sleep(attemptMs - settleMs, undefined, { ref: false })
    const admit = async (session: Session, n: number) => {
      try {
        await opening[n]
        await Promise.race([settled, sleep(settleMs, undefined, { ref: false })])
        const isOther = !this.follows(session)
        // A server that has begun to respond may be distant; others may be down.
        if (isOther && all.some(({ isAnswering }) => isAnswering)) await Promise.race([settled, patience])
        // Another standby may lack plants that were read before.
        if (isOther && this.isReading && this.#followed)
          throw new Error('it is not the server that this command was reading from')
        // To read, use a standby only after an attempt that found no primary: the URL may name only standbys.
        const hasPrimary = all.some(({ timeline }) => timeline)
        if (isOther && !session.timeline && (hasPrimary || !this.#pauseMs)) throw standbyError(hasPrimary)
        this.#refuseDeposed(session, all)
        await this.#checkStore(session, all)
        if (!this.isReading && this.#pauseMs > 0) await session.query(endBarriers)
        // The whole log of a primary must be on its standbys.
        if (!this.isReading) await session.passBarrier()
        return session
      } catch (error) {
        throw failureOf(session.server, error as Error)
      }
    }
    return Promise.any(all.map(admit))
  }

  /**
   * Throws if a later timeline of the same cluster was seen, or if another server also responds as a primary on this
   * timeline and is not followed, such as a base backup without standby.signal. A URL with one host offers no
   * alternative.
   */
  #refuseDeposed(session: Session, all: Session[]): void {
    const { timeline, server, system, origin } = session
    if (!timeline || this.#urls.length === 1) return
    const later = [this.#followed, ...all].find((other) => isLater(other, session))
    if (later)
      throw new Error(`${server} was deposed: it is on timeline ${timeline}, and ${later.timeline} was seen`)
    const rival = all.find((one) => one.origin !== origin && one.origin.startsWith(`${timeline}/${system}/`))
    if (rival && !this.follows(session))
      throw new Error(`${server} and ${rival.server} are both primaries on timeline ${timeline}`)
  }

  /** Checks that a server has this store. Creates the store if no other server can have one. */
  async #checkStore(session: Session, all: Session[]): Promise<void> {
    const pinned = this.#schema && session.query(`SET search_path = ${this.#schema}`)
    const [found] = await Promise.all([findStore(session), pinned])
    const { id, schema } = found ?? (await this.#createStore(session, all))
    this.#schema ??= schema
    if (!pinned) await session.query(`SET search_path = ${this.#schema}`)
    this.storeId ??= id
    if (id !== this.storeId) throw new StoreRefused(`it contains a different store (${id})`)
    if (!this.isReading && found?.missing.length) await createStore(session, this.#options)
  }

  async #createStore(session: Session, all: Session[]): Promise<FoundStore> {
    // A server that was restored from a backup may have a different store, or none.
    if (!this.#options.create || this.storeId !== undefined)
      throw new StoreRefused('it does not contain a plant store', { isMissing: true })
    // Two hosts may be the same server.
    const others = all.filter(({ origin }) => origin !== session.origin)
    const standbys = others.filter(({ timeline }) => timeline === null)
    const found = await Promise.all(standbys.map(findStore))
    if (standbys.length < others.length || found.some((store) => store !== undefined))
      throw new Error(
        'it does not contain a plant store, and one is created only if all other servers are standbys without one',
      )
    return createStore(session, this.#options)
  }

  /** `before`: a session with the server that was followed when the attempt began. */
  #follow(session: Session, before: Session | undefined): void {
    const { origin, server } = session
    if (this.follows(session)) return
    // Two connections found different primaries at the same time.
    if (before !== this.#followed)
      throw new Error(`another connection switched from ${server} to a different server`)
    if (this.#followed) this.#options.logger.warn({ server, origin }, 'now using another database server')
    this.#followed = session
  }

  /** Reports a connection that was lost or could not be established. */
  reportFailure(fault: Error | string, role: Role): void {
    if (!this.#closing.signal.aborted) this.#outage.reportFailure(fault, { role })
  }

  /** Ends all sessions; work in progress on them rejects. */
  close(): void {
    this.#closing.abort()
    this.#followed = undefined
  }
}
