// Follows one server of the cluster, on one timeline, with all connections of this thread. When one of them finds that
// another server has taken over, the others leave the old one, too.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { handicapMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { StoreRefused } from '../store.ts'
import { mostTelling, ServerFailure } from './failures.ts'
import { prepareSchema, type SchemaUse } from './postgres-schema.ts'
import { type Origin, Session } from './session.ts'

/** A session being opened; `servers`: names of those asked; `destroy` ends it in any state. */
export type Connection = { readonly session: Promise<Session>; readonly servers: string; destroy(): void }

/** The purpose of a session; one is open per role. */
export type Role = 'head' | 'look-up' | 'writer' | 'probe' | `read-${number}`

export type ServersOptions = {
  /** A URL per server of the cluster. */
  urls: string[]
  /** Identifies this thread in the database. */
  processId: string
  /** Name of its sessions. */
  name: string
  logger: Logger
  reconnected: () => void
  use: SchemaUse
}

/** Messages on connections; their effect on requests is logged where these are answered. */
const words = { gone: 'a connection to the database was lost', back: 'the database is connected again' }

export class Servers {
  /** Called for each connection made again. */
  readonly reconnected: () => void
  readonly #logger: Logger
  /** Shared by all connections. */
  readonly #outage: Outage
  readonly #urls: string[]
  readonly #name: string
  readonly #use: SchemaUse
  readonly #listeners: (() => void)[] = []
  #followed: Origin | undefined
  /** Number of changes of the followed server: an attempt that began before the last one must not undo it. */
  #changes = 0
  /** The latest timeline that was followed, by system. */
  readonly #latest = new Map<string, number>()
  #storeId: string | undefined
  #isAwaited = false

  constructor({ urls, processId, name, logger, reconnected, use }: ServersOptions) {
    this.#use = use
    this.#urls = urls
    this.#name = `${name} ${processId}`
    this.#logger = logger
    this.#outage = new Outage(logger, words)
    this.reconnected = reconnected
  }

  /** The store's id, once a first connection was made. */
  get storeId(): string {
    return this.#storeId as string
  }

  /** Calls `leave` when another server is followed, as sessions with the former one are useless then. */
  onChange(leave: () => void): void {
    this.#listeners.push(leave)
  }

  follows(origin: Origin): boolean {
    return origin.name === this.#followed?.name
  }

  /** Reports a connection that was lost or failed. Before the first one was made, warns only once. */
  reportFailure(error: Error, role: Role): void {
    if (this.#followed) this.#outage.reportFailure(error, { role })
    else if (!this.#isAwaited)
      this.#logger.warn({ reason: error.message }, 'cannot connect to the database yet')
    this.#isAwaited = true
  }

  reportSuccess(): void {
    this.#outage.reportRecovery()
  }

  /** Connects to all servers at once, so that a frozen one delays nothing, and keeps the first acceptable one. */
  connect(role: Role): Connection {
    const began = this.#changes
    const sessions = this.#urls.map((url) => new Session(url, this.#name, role !== 'writer'))
    const destroy = () => {
      for (const session of sessions) session.destroy()
    }
    const session = Promise.any(sessions.map((candidate) => this.#admit(candidate))).then(
      (winner) => {
        for (const other of sessions) if (other !== winner) other.destroy()
        this.#follow(winner, began)
        return winner
      },
      ({ errors }: AggregateError) => {
        throw mostTelling(errors)
      },
    )
    return { session, servers: sessions.map(({ server }) => server).join(), destroy }
  }

  /** Resolves once a session can be trusted: its server takes writes, has this store, and its log is on the standbys. */
  async #admit(session: Session): Promise<Session> {
    try {
      await session.open()
      this.#see(session.origin)
      await this.#prepare(session)
      await session.passBarrier()
      /* c8 ignore next 2: an old primary that can commit without standbys; a session that was given up in the same moment */
      if (this.#isOlder(session.origin)) await sleep(handicapMs, undefined, { ref: false })
      if (session.destroyed) throw new Error('it was given up meanwhile')
      return session
    } catch (error) {
      throw new ServerFailure(session.server, error as Error)
    }
  }

  /** Prepares the schema: a server restored from a backup may have an older one, or another store. */
  async #prepare(session: Session): Promise<void> {
    const id = await prepareSchema(session, this.#use)
    this.#storeId ??= id
    if (id !== this.#storeId) throw new StoreRefused(`it holds another store (${id})`)
  }

  #see({ system, timeline }: Origin): void {
    this.#latest.set(system, Math.max(timeline, this.#latest.get(system) ?? 0))
  }

  /** True for an old primary that still runs, and for a restored backup. */
  #isOlder({ system, timeline }: Origin): boolean {
    /* c8 ignore next: the same old primary */
    if (timeline < (this.#latest.get(system) ?? 0)) return true
    return this.#followed !== undefined && system !== this.#followed.system
  }

  #follow({ origin, server }: Session, began: number): void {
    if (this.follows(origin)) return
    /* c8 ignore next: two connections that find two primaries in the same moment */
    if (began !== this.#changes) throw new Error(`${server} was left for another server meanwhile`)
    if (this.#followed)
      this.#logger.warn({ server, origin: origin.name }, 'another database server is followed now')
    this.#followed = origin
    this.#changes++
    this.#latest.set(origin.system, origin.timeline)
    for (const leave of this.#listeners) leave()
  }
}
