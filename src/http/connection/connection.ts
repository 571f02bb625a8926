// The requests of one connection, of which a few are served at a time: the parser then stops at the next head, and
// reading goes on once all of them are answered. After an answer that ends the connection, nothing is parsed.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { requestsPerConnection, stalledMs } from '../../limits.ts'
import type { TimeSlices } from '../../runtime/time-slices.ts'
import type { Grant } from '../../tokens/verifier.ts'
import { endGently } from './end-gently.ts'
import type { Exchange } from './exchange.ts'

/** Kept on the socket itself: a WeakMap costs a look-up per request, and time in the garbage collector. */
const connectionKey = Symbol('connection')

/** Fields of Node's server on a socket (lib/_http_server.js). `_paused`: the client does not take its answers. */
type Parsed = Socket & {
  _paused?: boolean
  parser?: Parser | null
  _handle?: { writeQueueSize: number } | null
  [connectionKey]?: Connection
}
type Message = IncomingMessage & { upgrade: boolean }
type Parser = { onIncoming(message: Message, keepAlive: boolean): number; resume(): void }

/** HPE_PAUSED of llhttp: the unread rest comes back as a client error of that code. */
const stopParsing = 21
/** An empty chunk, which lets the parser finish a message without a body. It must have memory behind it. */
const nothing = Buffer.alloc(1).subarray(1)

/** The connection of a served socket; one that was refused or closed at once has none. */
export function connectionOf(socket: Socket): Connection {
  return (socket as Parsed)[connectionKey] as Connection
}

export class Connection {
  readonly socket: Parsed
  /** Parsed requests that are not answered yet, in order. */
  readonly open: Exchange[] = []
  /** The latest request, dropped once received and answered: kept longer, it would survive collections. */
  latest: Exchange | undefined
  /** The last accepted credentials, and what they grant. */
  kept: { authorization: string; grant: NonNullable<Grant> } | undefined
  readonly #slices: TimeSlices
  readonly #idle: (connection: Connection) => void
  /** Serves the request at which the parser stopped. */
  #next: (() => void) | undefined
  /** Bytes that were read after the head of that request, not parsed yet. */
  #rest: Buffer | undefined
  #goesOn = false
  /** Requests begun since the last read. */
  #begun = 0
  #bytesRead = 0
  #last = false
  #over: (() => void) | undefined
  /** Bytes that the client had taken at the last sweep, and the time since when that number is the same. */
  #taken = 0
  #takenMs = performance.now()

  /** `slices`: schedule connections that had to wait; `idle`: called when the connection may have become idle. */
  constructor(socket: Parsed, slices: TimeSlices, idle: (connection: Connection) => void) {
    this.socket = socket
    socket[connectionKey] = this
    this.#slices = slices
    this.#idle = idle
    // Node calls this behind the last answer of a connection.
    socket.destroySoon = () => endGently(socket)
    if (socket.parser) this.#watch(socket.parser)
  }

  #watch(parser: Parser): void {
    const { onIncoming } = parser
    parser.onIncoming = (message, keepAlive) => {
      if (this.#last) {
        message.upgrade = false
        return stopParsing
      }
      // Behind an upgrade, the last request of its connection, the parser stops by itself.
      if (!this.#isFull() || message.upgrade) return onIncoming(message, keepAlive)
      this.#next = () => void onIncoming(message, keepAlive)
      return stopParsing
    }
  }

  /** Counts a request that arrives; true when it may not begin now. Fewer are allowed while others wait. */
  #isFull(): boolean {
    const { bytesRead } = this.socket
    if (bytesRead !== this.#bytesRead) this.#begun = 0
    this.#bytesRead = bytesRead
    const most = this.#slices.isBusy ? 1 : requestsPerConnection
    return this.open.length >= most || ++this.#begun > 2 * most || this.socket._paused === true
  }

  add(exchange: Exchange): void {
    this.latest = exchange
    this.open.push(exchange)
  }

  /** Removes an exchange that was answered, or whose client is gone. */
  leave(exchange: Exchange): void {
    if (this.open.length === 1) this.open.pop()
    else this.open.splice(this.open.indexOf(exchange), 1)
    if (exchange === this.latest && exchange.raw.complete && !this.socket.destroyed) this.latest = undefined
    if (this.open.length === 0) this.#over?.()
    if (this.#rest) this.#goOn()
    else this.#idle(this)
  }

  /** Keeps what the parser left unread; behind a last request it is dropped. */
  hold(rest: Buffer): void {
    this.#rest = this.#last ? undefined : rest
    this.#stopReading()
    if (this.open.length === 0) setImmediate(() => this.#goOn())
  }

  /** Stops reading, also where Node would resume the socket by itself: later bytes must not overtake `#rest`. */
  #stopReading(): void {
    this.socket.pause()
    this.socket.resume = () => {
      this.#goOn()
      return this.socket
    }
  }

  #goOn(): void {
    // Wait until all are answered: stopping the parser again would cost as much as a few requests.
    if (!this.#rest || this.#goesOn || this.open.length > 0 || this.socket._paused) return
    this.#goesOn = true
    this.#slices.run(() => {
      this.#goesOn = false
      if (!this.socket.destroyed && !this.#last) this.#parse()
    }, 'requests in a row')
  }

  #parse(): void {
    const socket = this.socket
    const rest = this.#rest as Buffer
    const next = this.#next
    this.#next = undefined
    this.#rest = undefined
    this.#begun = 0
    socket.parser?.resume()
    next?.()
    /* c8 ignore next 4: the answers of this turn fill the buffers of a client that reads slowly */
    if (socket._paused) {
      this.#rest = rest
      return
    }
    /* c8 ignore next: whether the parser stopped at the last byte that was read is up to the network */
    socket.emit('data', rest.length > 0 ? rest : nothing)
    if (this.#rest) return
    Reflect.deleteProperty(socket, 'resume')
    socket.resume()
    this.#idle(this)
  }

  /**
   * Resets a connection whose client has taken none of the waiting bytes for `stalledMs`; returns whether it was reset.
   * Without a reset, the client could mistake a partial answer for the whole.
   */
  cutStalled(nowMs: number): boolean {
    const { bytesWritten, writableLength, _handle } = this.socket
    /* c8 ignore next: a socket that has just been closed has no handle */
    const untaken = writableLength + (_handle?.writeQueueSize ?? 0)
    const taken = bytesWritten - untaken
    if (untaken === 0 || taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    if (nowMs - this.#takenMs <= stalledMs) return false
    /* c8 ignore next 2: seen from outside, in a process of its own, by test/http/fairness.test.ts */
    this.socket.resetAndDestroy()
    return true
  }

  /** Serves no requests beyond the parsed ones (RFC 9112, section 9.6). `then` is called once these are answered. */
  end(then: () => void): void {
    this.#last = true
    this.#stopReading()
    if (this.open.length === 0) then()
    else this.#over = then
  }

  /** Ends the connection with the answer to `exchange` (default: the last open one); what follows is not served. */
  endAfter(exchange = this.open.at(-1) as Exchange): void {
    this.#last = true
    const { raw } = exchange.reply
    // The head already sent may announce that the connection stays open.
    if (raw.headersSent) this.#over = () => endGently(this.socket)
    raw.shouldKeepAlive = false
  }
}
