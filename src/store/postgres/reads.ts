// Reads pages on a few connections of their own, one at a time on each: a slow page costs no other its connection. Those
// that wait are few, and not for long; a reader is told early that it must come back.
import { maxWaitingReads, readConnections, readQueueMs, storeLimitMs } from '../../limits.ts'
import { StoreUnavailable } from '../store.ts'
import { Link } from './links.ts'
import type { Servers } from './servers.ts'
import type { Session } from './session.ts'

type Waiting = { take(link: Link): void; timer: NodeJS.Timeout }

export class Reads {
  readonly #links: Link[]
  readonly #idle: Link[]
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>()

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
    const { promise, resolve, reject } = Promise.withResolvers<Link>()
    const late = () => {
      this.#waiting.delete(waiting)
      reject(new Error(`no connection was free in ${readQueueMs} ms`))
    }
    const waiting: Waiting = { take: resolve, timer: setTimeout(late, readQueueMs) }
    this.#waiting.add(waiting)
    return promise
  }

  #release(link: Link): void {
    const [next] = this.#waiting
    if (!next) {
      this.#idle.push(link)
      return
    }
    this.#waiting.delete(next)
    clearTimeout(next.timer)
    next.take(link)
  }

  /** Whatever is still under way rejects. */
  close(): void {
    for (const link of this.#links) link.close()
  }
}
