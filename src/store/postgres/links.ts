// A connection to the one server of a PostgreSQL cluster that takes writes. It is made when it is needed and, after a
// failure, made anew: to the same server, or to the one that was promoted in its place.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { StoreRefused } from '../store.ts'

/** How long a server may keep us waiting before its connection is given up; a frozen one never answers. */
const attemptMs = 2000
/** How long a request may take in all, over all attempts. */
export const limitMs = 5000
/** With less time left than this, no further attempt is made. */
const shortestMs = 500
const pauseMs = 50
/**
 * Less than an attempt: a wait for a lock ends on the server first, so that no sessions without a client pile up there.
 * There is no statement_timeout: it would cut a COMMIT's wait for the standbys short, which then looks like a success.
 */
const lockMs = 1500

/** What the server says of a fault that another attempt, perhaps on another server, may not meet. */
const passing = /^(08|25006|40|53300|55P03|57)/

/** `client` settles when the connection is made; `destroy` ends it in any state. */
type Connection = { client: Promise<pg.Client>; destroy(): void }

export class Link {
  readonly #urls: string[]
  readonly #logger: Logger
  #connection: Connection | undefined
  #closed = false

  /** `urls`: one for each server of the cluster. */
  constructor(urls: string[], logger: Logger) {
    this.#urls = urls
    this.#logger = logger
  }

  /**
   * Does `work` on the connection, which several may share. When that fails, the connection is given up and the work
   * done again on a new one: it must bear that. Rejects with the last failure when the time is up or the server said no.
   */
  async run<T>(work: (client: pg.Client) => Promise<T>, deadline = Date.now() + limitMs): Promise<T> {
    let failure: unknown = new Error('the time was up before the turn came')
    for (;;) {
      const leftMs = deadline - Date.now()
      if (leftMs < shortestMs) throw failure
      try {
        return await this.#attempt(work, Math.min(attemptMs, leftMs))
      } catch (error) {
        if (isFinal(error)) throw error
        failure = error
        await sleep(pauseMs)
      }
    }
  }

  async #attempt<T>(work: (client: pg.Client) => Promise<T>, timeoutMs: number): Promise<T> {
    if (this.#closed) throw new StoreRefused('the store is closed')
    this.#connection ??= connect(this.#urls)
    const connection = this.#connection
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(late.reject, timeoutMs, new Error(`no answer in ${timeoutMs} ms`))
    const done = Promise.race([connection.client.then(work), late.promise])
    return done
      .catch((error) => {
        this.#giveUp(connection, error)
        throw error
      })
      .finally(() => clearTimeout(timer))
  }

  #giveUp(connection: Connection, error: unknown): void {
    if (connection !== this.#connection) return
    this.#connection = undefined
    connection.destroy()
    if (!this.#closed) this.#logger.warn({ err: error }, 'a connection to the database was given up')
  }

  /** Whatever is still under way rejects. */
  close(): void {
    this.#closed = true
    this.#connection?.destroy()
  }
}

/** Whether the server's word is its last: it refused what was asked, and would do so again. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof StoreRefused || (error instanceof pg.DatabaseError && !passing.test(String(error.code)))
  )
}

/** Asks all servers at once, so that a frozen one holds up nobody, and keeps the one that takes writes. */
function connect(urls: string[]): Connection {
  const clients = urls.map(
    (connectionString) =>
      new pg.Client({ connectionString, pipeline: true, keepAlive: true, lock_timeout: lockMs, types }),
  )
  const destroy = (client: pg.Client) => client.connection.stream.destroy()
  const client = Promise.any(clients.map(openWritable)).then(
    (winner) => {
      clients.filter((other) => other !== winner).forEach(destroy)
      return winner
    },
    ({ errors }: AggregateError) => {
      throw mostTelling(errors)
    },
  )
  return { client, destroy: () => clients.forEach(destroy) }
}

/**
 * The session's settings: a commit waits for stable storage here and on the standbys, whatever the server's default
 * (remote_apply waits for even more). Plans are kept, and suit a log of any length, however fast it has grown since:
 * all there is goes by an index, in its order.
 */
const prepareSession = `
  SELECT current_setting('transaction_read_only') AS read_only, set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false), set_config('jit', 'off', false),
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

async function openWritable(client: pg.Client): Promise<pg.Client> {
  // Between queries nobody waits for an answer; the next query meets the fault.
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query(prepareSession)
  if (rows[0].read_only === 'on') throw new Error(`${client.host}:${client.port} takes no writes`)
  return client
}

/** What a server said (a wrong password, a database that is not there) says more than that another is not reachable. */
function mostTelling(errors: (Error & { code?: string })[]): Error {
  const said = errors.find((error) => error instanceof pg.DatabaseError)
  /* c8 ignore next: only the failure of a name with several addresses has a code and no message */
  return said ?? new Error(errors.map(({ message, code }) => message || code).join('; '))
}

/** 64-bit integers as numbers: ours are within ±(2^53−1). */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: 'text') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}
