// Follows one server of the cluster. All connections of this process follow one server on one timeline; when one of
// them finds that another server has taken over, the others leave the old one, too.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { handicapMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { StoreRefused } from '../store.ts'
import { mostTelling, ServerFailure } from './failures.ts'
import { prepareSchema, type SchemaUse } from './postgres-schema.ts'
import { type Origin, Session } from './session.ts'

/** A session in the making; `servers` names those that were asked. `destroy` ends it in any state. */
export type Connection = { readonly session: Promise<Session>; readonly servers: string; destroy(): void }

/** The purpose of a session. No two that are open at once share a role. */
export type Role = 'head' | 'look-up' | 'writer' | 'probe' | `read-${number}`

export type ServersOptions = {
  /** One for each server of the cluster. */
  urls: string[]
  /** Names this process in the database. */
  processId: string
  /** The name of the sessions of this process. */
  name: string
  logger: Logger
  reconnected: () => void
  use: SchemaUse
}

/** The effect on requests is logged where they are answered. */
const words = { gone: 'a connection to the database was lost', back: 'the database is connected again' }

export class Servers {
  /** Is told of each connection that was made anew. */
  readonly reconnected: () => void
  readonly #logger: Logger
  /** One for all its connections. */
  readonly #outage: Outage
  readonly #urls: string[]
  readonly #name: string
  readonly #use: SchemaUse
  readonly #listeners: (() => void)[] = []
  #followed: Origin | undefined
  /** Number of changes of the server: an attempt that began before the last one must not undo it. */
  #changes = 0
  /** The latest timeline that took writes since then, for each system. */
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

  /** The store's name; known when a first connection has been made. */
  get storeId(): string {
    return this.#storeId as string
  }

  /** `leave` is called when another server is followed; sessions with the one before are worth nothing then. */
  onChange(leave: () => void): void {
    this.#listeners.push(leave)
  }

  follows(origin: Origin): boolean {
    return origin.name === this.#followed?.name
  }

  /** A connection was lost, or could not be made. At the start that is no outage yet, and one line is enough. */
  reportFailure(error: Error, role: Role): void {
    if (this.#followed) this.#outage.reportFailure(error, { role })
    else if (!this.#isAwaited)
      this.#logger.warn({ reason: error.message }, 'cannot connect to the database yet')
    this.#isAwaited = true
  }

  reportSuccess(): void {
    this.#outage.reportRecovery()
  }

  /** Asks all servers at once, so that a frozen one holds up nobody, and keeps the first that may be followed. */
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

  /** Resolves when what the session shows may be believed. */
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

  /** A server that was restored from a backup may have an older schema, or the database of another store. */
  async #prepare(session: Session): Promise<void> {
    const id = await prepareSchema(session, this.#use)
    this.#storeId ??= id
    if (id !== this.#storeId) throw new StoreRefused(`it holds another store (${id})`)
  }

  #see({ system, timeline }: Origin): void {
    this.#latest.set(system, Math.max(timeline, this.#latest.get(system) ?? 0))
  }

  /** True for an old primary that is still running, and for a restored backup. */
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
