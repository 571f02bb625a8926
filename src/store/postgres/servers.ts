// Follows one server of the cluster, on one timeline, with all connections of this thread. When one of them finds that
// another server has taken over, the others leave the old one before they are used again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { attemptMs, handicapMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import { StoreRefused } from '../store.ts'
import { mostTelling, ServerFailure } from './failures.ts'
import { prepareSchema, type SchemaUse } from './postgres-schema.ts'
import { type Origin, Session } from './session.ts'

/** A connection in the making. */
export type Connection = {
  /** Settles when there is a session, or none. */
  readonly opened: Promise<void>
  session?: Session
  /** Throws the error of a wait for `opened` that took too long. */
  late(): never
  /** Ends it in any state. */
  destroy(): void
}

/** The purpose of a session; one is open per role. */
export type Role = 'head' | 'look-up' | 'writer' | 'probe' | `read-${number}`

export type ServersOptions = {
  /** A URL per server of the cluster. */
  urls: string[]
  /** Name of the sessions of this thread. */
  name: string
  logger: Logger
  /** Called for each connection made again. */
  reconnected: () => void
  use: SchemaUse
}

/** Messages on connections; their effect on requests is logged where these are answered. */
const words = { gone: 'a connection to the database was lost', back: 'the database is connected again' }

export class Servers {
  readonly #options: ServersOptions
  /** Shared by all connections. */
  readonly #outage: Outage
  #followed: Origin | undefined
  /** The latest timeline that was seen, by system. */
  readonly #latest = new Map<string, string>()
  readonly #made = new Set<Role>()
  #storeId: string | undefined
  #isAwaited = false

  constructor(options: ServersOptions) {
    this.#options = options
    this.#outage = new Outage(options.logger, words)
  }

  /** The store's id, once a first connection was made. */
  get storeId(): string {
    return this.#storeId as string
  }

  follows(origin: Origin): boolean {
    return origin.name === this.#followed?.name
  }

  /** Reports a connection that was lost or failed. Before the first one was made, warns only once. */
  reportFailure(error: Error, role: Role): void {
    if (this.#followed) this.#outage.reportFailure(error, { role })
    else if (!this.#isAwaited)
      this.#options.logger.warn({ reason: error.message }, 'cannot connect to the database yet')
    this.#isAwaited = true
  }

  /** Connects to all servers at once, so that a frozen one delays nothing, and keeps the first acceptable one. */
  connect(role: Role): Connection {
    const before = this.#followed
    const { urls, name } = this.#options
    const sessions = urls.map((url) => new Session(url, name))
    const end = (ended: Session[]) => {
      for (const session of ended) session.destroy()
    }
    const late = () => {
      throw new Error(`${sessions.map(({ server }) => server)}: no session was ready in time`)
    }
    const keep = (winner: Session) => {
      end(sessions.filter((session) => session !== winner))
      this.#follow(winner, before)
      this.#noteMade(role)
      connection.session = winner
    }
    const admitted = sessions.map((session) => this.#admit(session, role === 'writer' ? 0 : attemptMs))
    const first = Promise.any(admitted).catch(({ errors }: AggregateError) => {
      throw mostTelling(errors)
    })
    const opened = withTimeout(first, attemptMs, late).then(keep)
    const connection: Connection = { opened, late, destroy: () => end(sessions) }
    return connection
  }

  /** Resolves once a session can be trusted: its server takes writes, has this store, and its log is on the standbys. */
  async #admit(session: Session, timeoutMs: number): Promise<Session> {
    try {
      await session.open(timeoutMs)
      this.#see(session.origin)
      // A server restored from a backup may have an older schema, or another store.
      const id = await prepareSchema(session, this.#options.use)
      this.#storeId ??= id
      if (id !== this.#storeId) throw new StoreRefused(`it holds another store (${id})`)
      /* c8 ignore next: an old primary that can commit without standbys */
      if (this.#isOlder(session.origin)) await sleep(handicapMs, undefined, { ref: false })
      await session.passBarrier()
      return session
    } catch (error) {
      throw new ServerFailure(session.server, error as Error)
    }
  }

  #see({ system, timeline }: Origin): void {
    const latest = this.#latest.get(system)
    if (latest === undefined || latest < timeline) this.#latest.set(system, timeline)
  }

  /** True for an old primary that still runs, and for a restored backup. */
  #isOlder({ system, timeline }: Origin): boolean {
    /* c8 ignore next: the same old primary */
    if (timeline !== this.#latest.get(system)) return true
    return this.#followed !== undefined && system !== this.#followed.system
  }

  /** `before`: the origin that was followed when the attempt began. */
  #follow({ origin, server }: Session, before: Origin | undefined): void {
    if (this.follows(origin)) return
    /* c8 ignore next: two connections that find two primaries in the same moment */
    if (before !== this.#followed) throw new Error(`${server} was left for another server meanwhile`)
    if (this.#followed)
      this.#options.logger.warn({ server, origin: origin.name }, 'another database server is followed now')
    this.#followed = origin
    this.#latest.set(origin.system, origin.timeline)
  }

  #noteMade(role: Role): void {
    if (this.#made.has(role)) this.#options.reconnected()
    this.#made.add(role)
    this.#outage.reportRecovery()
  }
}
