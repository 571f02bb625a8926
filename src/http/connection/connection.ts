// The requests of one connection. Some of them may be outstanding; one more is the last, and nothing behind it is parsed.
import type { Socket } from 'node:net'
import { openStalledMs, requestsPerConnection, stalledMs } from '../../limits.ts'
import type { Grant } from '../../tokens/verifier.ts'
import { endGently } from './end-gently.ts'
import type { Exchange } from './exchange.ts'

/** Not an import of node:http, which would read all its exports and load undici: 60 ms and 8 MiB per thread. */
const { IncomingMessage } = process.getBuiltinModule('node:http')
/** Kept on the socket itself: a WeakMap costs a look-up per request, and time in the garbage collector. */
const connectionKey = Symbol('connection')

type Served = Socket & { [connectionKey]?: Connection }

/** The connection of a served socket; one that was refused or closed at once has none. */
export function connectionOf(socket: Socket): Connection {
  return (socket as Served)[connectionKey] as Connection
}

/**
 * The head of a request. One behind the last request of its connection counts as an upgrade: Node stops the parser there,
 * and hands over the socket.
 */
export class RequestHead extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket)
    if (connectionOf(socket)?.isLast)
      Object.defineProperty(this, 'upgrade', { get: () => true, set: () => {} })
  }
}

/**
 * The connections of a network. `idle`: those without an open request, idle longest first. One whose next head is
 * incomplete counts as idle: heads that are sent slowly could otherwise lock out everybody else.
 */
export type Peer = { network: string; connections: Set<Connection>; idle: Set<Connection> }

export class Connection {
  readonly socket: Socket
  /** The connections of the same network. */
  readonly peer: Peer
  /** Parsed requests that are not answered yet, in order. */
  readonly open: Exchange[] = []
  /** The latest request, dropped once received and answered: kept longer, it would survive collections. */
  latest: Exchange | undefined
  /** The last accepted credentials, and what they grant. */
  kept: { authorization: string; grant: NonNullable<Grant> } | undefined
  /** Requests of the last read. */
  begun = 0
  /** True when no further request is served. */
  isLast = false
  /** Bytes of all answers that needed no token, and those answers that count as in flight until the connection ends. */
  openBytes = 0
  readonly untaken: Exchange[] = []
  #bytesRead = 0
  #over: (() => void) | undefined
  /** Bytes that the client had taken at the last sweep, and the time since when that number is the same. */
  #taken = 0
  #takenMs = performance.now()

  constructor(socket: Socket, peer: Peer) {
    this.socket = socket
    this.peer = peer
    ;(socket as Served)[connectionKey] = this
    // Node calls this behind the last answer of a connection.
    socket.destroySoon = () => this.#close()
  }

  /** Adds a request that arrived. One more than may be outstanding, or come in one read, is the last. */
  add(exchange: Exchange): void {
    const { bytesRead } = this.socket
    this.begun = bytesRead === this.#bytesRead ? this.begun + 1 : 1
    this.#bytesRead = bytesRead
    this.peer.idle.delete(this)
    this.latest = exchange
    if (Math.max(this.open.push(exchange), this.begun) > requestsPerConnection) this.endAfter(exchange)
  }

  /** Removes an exchange that was answered, or whose client is gone. */
  leave(exchange: Exchange): void {
    if (this.open.length === 1) this.open.pop()
    else this.open.splice(this.open.indexOf(exchange), 1)
    if (exchange === this.latest && exchange.raw.complete && !this.socket.destroyed) this.latest = undefined
    if (this.open.length === 0) this.#over?.()
    this.settle()
  }

  /** Counts the connection as idle, if it is. */
  settle(): void {
    if (this.open.length === 0 && !this.socket.destroyed) this.peer.idle.add(this)
  }

  /**
   * Resets a connection whose client has taken none of the waiting bytes for a while; returns whether it was reset.
   * Without a reset, the client could mistake a partial answer for the whole.
   */
  cutStalled(nowMs: number): boolean {
    const { bytesWritten, writableLength } = this.socket
    const taken = bytesWritten - writableLength
    if (writableLength === 0 || taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    const limitMs = this.open[0]?.owner === '' ? openStalledMs : stalledMs
    if (nowMs - this.#takenMs <= limitMs) return false
    /* c8 ignore next 2: seen from outside, in a process of its own, by test/http/fairness.test.ts */
    this.socket.resetAndDestroy()
    return true
  }

  /** Serves no requests beyond the parsed ones (RFC 9112, section 9.6). `then` is called once these are answered. */
  end(then: () => void): void {
    this.isLast = true
    this.socket.pause()
    if (this.open.length === 0) then()
    else this.#over = then
  }

  /** Ends the connection with the answer to `exchange` (default: the last open one); what follows is not served. */
  endAfter(exchange = this.open.at(-1) as Exchange): void {
    this.isLast = true
    const { raw } = exchange.reply
    // The head already sent may announce that the connection stays open.
    if (raw.headersSent) this.#over = () => this.#close()
    raw.shouldKeepAlive = false
  }

  #close(): void {
    const large = this.untaken.at(-1)
    endGently(this.socket, large && performance.now() - large.startMs)
  }
}
