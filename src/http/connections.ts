// The requests of one connection: a few of them are worked on at a time, the others wait, and nothing more is read of
// the connection until they have had their turn. So what one client can make wait is bounded by what one read brings.
import type { Socket } from 'node:net'
import { lingerMs, requestsPerConnection, stalledMs } from '../limits.ts'
import type { Grant } from '../tokens/verifier.ts'
import type { Exchange } from './exchange.ts'

/** Node's own way to stop reading requests (`parserOnIncoming` and `socketOnDrain` in lib/_http_server.js). */
type Pausable = Socket & {
  _paused?: boolean
  parser?: { resume(): void } | null
  _handle?: { writeQueueSize: number } | null
}

type Waiting = { exchange: Exchange; go: () => void }

export class Connection {
  readonly #socket: Pausable
  /** What was parsed and is not answered yet, in order. */
  readonly open: Exchange[] = []
  #latest: Exchange | undefined
  /** The Host of a request before, which was a proper one. */
  host: string | undefined
  /** The credentials of a request before, which let it pass, and what they allow. */
  kept: { authorization: string; grant: NonNullable<Grant> } | undefined
  #waiting: Waiting[] = []
  #working = 0
  #last = false
  #idle: (() => void) | undefined
  /** How many bytes the client had taken when that was last looked at, and since when they are so many. */
  #taken = 0
  #takenMs = performance.now()

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get socket(): Socket {
    return this.#socket
  }

  /** Whether further requests of this connection are served: none are after one that ends it (RFC 9112, 9.6). */
  get ending(): boolean {
    return this.#last
  }

  /** The request that was parsed last, answered or not. */
  get latest(): Exchange | undefined {
    return this.#latest
  }

  add(exchange: Exchange): void {
    this.#latest = exchange
    this.open.push(exchange)
  }

  /** Calls `go` when it is the turn of `exchange`; not at all when the client has gone by then. */
  enter(exchange: Exchange, go: () => void): void {
    if (this.#working < requestsPerConnection) {
      this.#working++
      exchange.begin(exchange.startMs)
      go()
    } else {
      this.#waiting.push({ exchange, go })
      this.#hold()
    }
  }

  /** `exchange` is answered, or its client gone. */
  leave(exchange: Exchange): void {
    const index = this.open.lastIndexOf(exchange)
    if (index === this.open.length - 1) this.open.pop()
    else this.open.splice(index, 1)
    if (exchange.working) this.#working--
    if (this.#waiting.length > 0) this.#next()
    if (this.open.length === 0 && this.#idle) this.#idle()
  }

  #next(): void {
    if (this.#socket.destroyed) {
      this.#waiting = []
      return
    }
    while (this.#working < requestsPerConnection && this.#waiting.length > 0) {
      const { exchange, go } = this.#waiting.shift() as Waiting
      /* c8 ignore next: its body broke off while it waited */
      if (exchange.reply.sent) continue
      this.#working++
      exchange.begin(performance.now())
      go()
    }
    if (this.#waiting.length === 0) this.#release()
  }

  /**
   * Resets a connection whose client takes no byte of what is there for it, and says whether it did. With less than a
   * reset, it could take the part of an answer that it has for the whole.
   */
  cutStalled(nowMs: number): boolean {
    const { bytesWritten, writableLength, _handle } = this.#socket
    /* c8 ignore next: what is written to a socket that has just been closed */
    const untaken = writableLength + (_handle?.writeQueueSize ?? 0)
    const taken = bytesWritten - untaken
    if (untaken === 0 || taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    if (nowMs - this.#takenMs <= stalledMs) return false
    /* c8 ignore next 2: seen from outside, in a process of its own, by test/fairness.test.ts */
    this.#socket.resetAndDestroy()
    return true
  }

  #hold(): void {
    this.#socket._paused = true
    this.#socket.pause()
  }

  #release(): void {
    this.#socket._paused = false
    this.#socket.parser?.resume()
    this.#socket.resume()
  }

  /** No request after those that are parsed is served. `then` is called once these are answered. */
  end(then: () => void): void {
    this.#last = true
    if (this.open.length === 0) then()
    else this.#idle = then
  }

  /** The connection ends with the answer to `exchange`; what is still sent to us meanwhile is read and dropped. */
  endAfter(exchange: Exchange): void {
    this.#last = true
    const { raw } = exchange.reply
    // Its head may have said already that the connection stays open.
    if (raw.headersSent) this.#idle = () => endGently(this.#socket)
    raw.shouldKeepAlive = false
    this.#socket.destroySoon = () => endGently(this.#socket)
  }
}

/**
 * Ends a connection so that the answer arrives: closing it while the client is still sending would reset it, and the
 * answer would be lost with it (RFC 9112, 9.6).
 */
export function endGently(socket: Socket): void {
  socket.end()
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}
