// What happens around every request: its access line, its count, the end of its time, its part in a quiet shutdown.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { inFlightBytes, maxOpenRequests, requestMs, requestsPerConnection } from '../limits.ts'
import { type Lost, StoreUnavailable } from '../store/store.ts'
import { BytesInFlight } from './bytes-in-flight.ts'
import { Connection } from './connections.ts'
import { ProblemError } from './problem-error.ts'

/** One answered (or abandoned) request. */
export type Access = {
  method: string
  url: string
  /** The path of the route that was matched. */
  route: string | undefined
  /** The status, or 499 when the client went away before it had the whole answer. */
  status: number
  durationMs: number
  remoteAddress: string | undefined
}

/** A request with what is known of it, from its head to the last byte of its answer. Times are `performance.now()`. */
export type Exchange = IncomingMessage & {
  reply: FastifyReply
  via: Connection
  startMs: number
  /** When it has to be answered. */
  deadlineMs: number
  /** What is said when it was not. */
  lost: Lost
  /** The id of the token that it came with. */
  owner: string
  /** How many bytes of its answer are in flight. */
  bytes: number
  remoteAddress: string
  /** Whether its connection has given it its turn. */
  working: boolean
  /** Where it is among all that are open; -1 when it is not any more. */
  place: number
}

const lateSweepMs = 100
const stalledSweepMs = 1000
const idleRequests = 4
const idleBytes = 2 ** 20

/** The exchange that a reply belongs to. */
export function exchangeOf(reply: FastifyReply): Exchange {
  return reply.request.raw as Exchange
}

/** Whether the client is still there, and its request without an answer. */
export function waits(reply: FastifyReply): boolean {
  return !reply.raw.headersSent && !reply.request.raw.socket.destroyed
}

/** Observes requests until their answers are out, and tells `report` of each. */
export class InFlight {
  readonly #report: (access: Access) => void
  readonly #connections = new WeakMap<Socket, Connection>()
  /** An array and not a Set: the tables that a busy Set leaves behind keep what was in them through many collections. */
  readonly #open: Exchange[] = []
  readonly #closed: (this: ServerResponse) => void
  readonly #sweepers: NodeJS.Timeout[]
  readonly #bytes = new BytesInFlight(inFlightBytes)

  constructor(report: (access: Access) => void) {
    this.#report = report
    const inFlight = this
    this.#closed = function closed() {
      inFlight.#ended(this.req as Exchange)
    }
    this.#sweepers = [
      setInterval(() => this.#answerLate(), lateSweepMs).unref(),
      setInterval(() => this.#cutStalled(), stalledSweepMs).unref(),
    ]
  }

  /** The connection of a socket, from its first request on. */
  connection(socket: Socket): Connection | undefined {
    return this.#connections.get(socket)
  }

  /** Takes a request up. False when its connection is ending: then it is not served, nor answered. */
  observe(request: FastifyRequest, reply: FastifyReply): boolean {
    const exchange = request.raw as Exchange
    const connection = this.#connections.get(exchange.socket) ?? this.#connect(exchange.socket)
    if (connection.ending) return false
    if (this.#open.length >= maxOpenRequests && connection.open.length >= requestsPerConnection) {
      exchange.socket.resetAndDestroy()
      return false
    }
    exchange.reply = reply
    exchange.via = connection
    exchange.startMs = performance.now()
    exchange.deadlineMs = Number.POSITIVE_INFINITY
    exchange.lost = request.method === 'POST' ? 'nothing-added' : 'unread'
    exchange.owner = ''
    exchange.bytes = 0
    exchange.remoteAddress = request.ip
    exchange.working = false
    exchange.place = this.#open.push(exchange) - 1
    connection.add(exchange)
    reply.raw.on('close', this.#closed)
    return true
  }

  /** Calls `go` when it is the turn of a request, and has it answered in time from then on. */
  enter(exchange: Exchange, go: () => void): void {
    exchange.via.enter(exchange, () => {
      exchange.deadlineMs = performance.now() + requestMs
      go()
    })
  }

  /**
   * Has the bytes of an answer counted until it is out. `share`: how much the bearer of its token may hold, for each
   * byte that is left for all. Throws `overloaded`.
   */
  hold(exchange: Exchange, bytes: number, share: number): void {
    if (!this.#bytes.take(exchange.owner, bytes, share))
      throw new ProblemError('overloaded', 'Too much is on its way to clients already.')
    exchange.bytes += bytes
  }

  #connect(socket: Socket): Connection {
    const connection = new Connection(socket)
    this.#connections.set(socket, connection)
    // Node tells only the first of several answers on a connection that it was closed.
    socket.once('close', () => {
      for (const exchange of [...connection.open]) this.#ended(exchange)
    })
    return connection
  }

  #ended(exchange: Exchange): void {
    if (exchange.place < 0) return
    const last = this.#open.pop() as Exchange
    if (last !== exchange) {
      this.#open[exchange.place] = last
      last.place = exchange.place
    }
    exchange.place = -1
    if (exchange.bytes > 0) this.#bytes.give(exchange.owner, exchange.bytes)
    const { method = '', url = '', reply, startMs, remoteAddress, via } = exchange
    const { raw, request } = reply
    via.leave(exchange)
    this.#report({
      method,
      url,
      route: request.is404 ? undefined : request.routeOptions.url,
      status: raw.writableFinished ? raw.statusCode : 499,
      durationMs: performance.now() - startMs,
      remoteAddress,
    })
  }

  /** One look at all requests costs less than a timer for each. */
  #answerLate(): void {
    const now = performance.now()
    for (const { reply, lost } of this.#open.filter(({ deadlineMs }) => deadlineMs <= now))
      if (waits(reply)) reply.send(new StoreUnavailable(lost, 'the time of a request was up'))
  }

  #cutStalled(): void {
    const now = performance.now()
    for (const via of new Set(this.#open.map((exchange) => exchange.via))) via.cutStalled(now)
  }

  /** From now on each connection ends with its last answer; after `graceMs` those that are still open are cut. */
  drain(server: Server, graceMs: number): void {
    for (const { via } of this.#open) if (via.latest) via.endAfter(via.latest)
    setTimeout(() => server.closeAllConnections(), graceMs).unref()
  }

  /** Whether there is little to do. */
  get isIdle(): boolean {
    return this.#open.length <= idleRequests && this.#bytes.total <= idleBytes
  }

  close(): void {
    for (const sweeper of this.#sweepers) clearInterval(sweeper)
  }
}
