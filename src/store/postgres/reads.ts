// Reads pages on a few connections of their own, one at a time on each. Few reads wait for a connection, and not for long:
// a client learns early that it must retry.
import { maxWaitingReads, readConnections, readQueueMs, storeLimitMs } from '../../limits.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import { StoreUnavailable } from '../store.ts'
import { Link } from './links.ts'
import type { Servers } from './servers.ts'
import type { Session } from './session.ts'

export class Reads {
  readonly #links: Link[]
  readonly #idle: Link[]
  /** What hands a connection to each read that waits, in the order in which they came. */
  readonly #waiting = new Set<(link: Link) => void>()

  constructor(servers: Servers) {
    this.#links = Array.from({ length: readConnections }, (_, n) => new Link(servers, `read-${n}`))
    this.#idle = [...this.#links]
  }

  /** Does `work`, which must be safe to repeat, on one of the connections; see `Link.run`. */
  async run<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const deadlineMs = performance.now() + storeLimitMs
    const link = this.#idle.pop() ?? (await this.#turn())
    try {
      return await link.run(work, deadlineMs)
    } finally {
      this.#release(link)
    }
  }

  async #turn(): Promise<Link> {
    if (this.#waiting.size >= maxWaitingReads)
      throw new StoreUnavailable('overloaded', 'too many reads wait for a connection')
    const { promise, resolve } = Promise.withResolvers<Link>()
    this.#waiting.add(resolve)
    return await withTimeout(promise, readQueueMs, () => {
      this.#waiting.delete(resolve)
      throw new Error(`no connection was free in ${readQueueMs} ms`)
    })
  }

  #release(link: Link): void {
    const [hand] = this.#waiting
    if (!hand) return void this.#idle.push(link)
    this.#waiting.delete(hand)
    hand(link)
  }

  /** Rejects the reads that are still under way. */
  close(): void {
    for (const link of this.#links) link.close()
  }
}
