// What happens around every request: its access line, its count, the end of its time, its part in a quiet shutdown.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { inFlightBytes, maxOpenRequests, requestsPerConnection } from '../limits.ts'
import type { ConnectionLog } from '../log/connection-log.ts'
import type { Meter } from '../meter.ts'
import { StoreUnavailable } from '../store/store.ts'
import { BytesInFlight } from './bytes-in-flight.ts'
import { Connection } from './connections.ts'
import { Exchange } from './exchange.ts'
import { ProblemError } from './problem-error.ts'
import { makeRequestIds } from './request-ids.ts'

const lateSweepMs = 100
const stalledSweepMs = 1000
/** How much of one turn of the event loop the answers to thousands of late requests may take. */
const lateTurnMs = 10
const idleRequests = 4
const idleBytes = 2 ** 20

/** On the socket itself: a WeakMap is looked through for each request, and by the garbage collector. */
const connectionKey = Symbol('connection')

type Carrier = IncomingMessage & { exchange: Exchange }
type Carried = Socket & { [connectionKey]?: Connection }

/** The exchange of a request. */
export function exchangeOf({ raw }: FastifyRequest): Exchange {
  return (raw as Carrier).exchange
}

/** Whether the client is still there, and its request without an answer. */
export function waits(reply: FastifyReply): boolean {
  return !reply.raw.headersSent && !reply.request.raw.socket.destroyed
}

/** `maxBytes`: how many bytes of answers may be on their way. */
export type InFlightOptions = {
  log: ConnectionLog
  isDraining: () => boolean
  maxBytes?: number
}

/**
 * Observes requests until their answers are out, and tells `report` of each. While `isDraining` each answer ends its
 * connection: whoever has one goes elsewhere with the next request.
 */
export class InFlight {
  readonly #report: (exchange: Exchange) => void
  readonly #isDraining: () => boolean
  /** An array and not a Set: the tables that a busy Set leaves behind keep what was in them through many collections. */
  readonly #open: Exchange[] = []
  readonly #closed: (this: ServerResponse) => void
  readonly #sweepers: NodeJS.Timeout[]
  readonly #bytes: BytesInFlight
  readonly #log: ConnectionLog
  /** The id of a request that came with this `X-Request-Id`, or none. */
  readonly requestId = makeRequestIds()

  constructor(
    { log, isDraining, maxBytes = inFlightBytes }: InFlightOptions,
    report: (exchange: Exchange) => void,
  ) {
    this.#log = log
    this.#bytes = new BytesInFlight(maxBytes)
    this.#report = report
    this.#isDraining = isDraining
    const inFlight = this
    this.#closed = function closed() {
      inFlight.#ended((this.req as Carrier).exchange)
    }
    this.#sweepers = [
      setInterval(() => this.#answerLate(), lateSweepMs).unref(),
      setInterval(() => this.#cutStalled(), stalledSweepMs).unref(),
    ]
  }

  /** The connection of a socket, from its first request on. */
  connection(socket: Socket): Connection | undefined {
    return (socket as Carried)[connectionKey]
  }

  /** Takes a request up; undefined when its connection is ending: then it is not served, nor answered. */
  observe(request: FastifyRequest, reply: FastifyReply): Exchange | undefined {
    const { socket } = request.raw
    const via = this.connection(socket) ?? this.#connect(socket)
    /* c8 ignore next: what is parsed behind the end of a connection depends on how packets fall */
    if (via.ending) return undefined
    /* c8 ignore next 5: it takes twenty thousand requests at once */
    if (this.#open.length >= maxOpenRequests && via.open.length >= requestsPerConnection) {
      this.#log.add(socket, { reason: 'overloaded' })
      socket.resetAndDestroy()
      return undefined
    }
    const exchange = new Exchange(reply, via, this.requestId(request.raw.headers['x-request-id']))
    ;(request.raw as Carrier).exchange = exchange
    exchange.place = this.#open.push(exchange) - 1
    via.add(exchange)
    reply.raw.on('close', this.#closed)
    if (this.#isDraining()) via.endAfter(exchange)
    return exchange
  }

  /**
   * Has so many bytes counted for an answer until it is out, or until it is known that they are fewer or more. `share`:
   * how much the bearer of its token may hold, for each byte that is left for all. Throws `overloaded`.
   */
  hold(exchange: Exchange, bytes: number, share: number): void {
    exchange.account ??= this.#bytes.account(exchange.owner)
    const more = bytes - exchange.bytes
    if (!this.#bytes.take(exchange.account, more, share))
      throw new ProblemError('overloaded', 'Too much is on its way to clients already.')
    exchange.bytes = bytes
  }

  #connect(socket: Socket): Connection {
    const connection = new Connection(socket)
    ;(socket as Carried)[connectionKey] = connection
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
    exchange.end()
    if (exchange.account) this.#bytes.give(exchange.account, exchange.bytes)
    exchange.via.leave(exchange)
    this.#report(exchange)
  }

  /** One look at all requests costs less than a timer for each. */
  #answerLate(): void {
    const now = performance.now()
    const isLate = ({ deadlineMs, reply }: Exchange) => deadlineMs <= now && waits(reply)
    for (const { reply, lost } of this.#open.filter(isLate)) {
      /* c8 ignore next 4: it takes thousands that are late at one moment */
      if (performance.now() - now > lateTurnMs) {
        setImmediate(() => this.#answerLate())
        return
      }
      reply.send(new StoreUnavailable(lost, 'the time of a request was up'))
    }
  }

  #cutStalled(): void {
    const now = performance.now()
    for (const via of new Set(this.#open.map((exchange) => exchange.via))) {
      const [first] = via.open
      /* c8 ignore next 2: seen from outside, in a process of its own, by test/fairness.test.ts */
      if (via.cutStalled(now)) this.#log.add(via.socket, { reason: 'stalled', requestId: first?.requestId })
    }
  }

  /** From now on each connection ends with its last answer; after `graceMs` those that are still open are cut. */
  drain(server: Server, graceMs: number): void {
    for (const { via } of this.#open) if (via.latest) via.endAfter(via.latest)
    setTimeout(() => {
      for (const { via, requestId } of this.#open)
        this.#log.add(via.socket, { reason: 'stopping', requestId })
      // With less than a reset, a client could take the part of an answer that it has for the whole.
      for (const { raw } of [...this.#open]) raw.socket.resetAndDestroy()
      server.closeAllConnections()
    }, graceMs).unref()
  }

  /** Whether there is little to do. */
  get isIdle(): boolean {
    return this.#open.length <= idleRequests && this.#bytes.total <= idleBytes
  }

  /** How many there are, and how many bytes of answers are on their way. */
  show(meter: Meter): void {
    const name = 'plant_store'
    meter.gauge(`${name}_requests_in_flight`, 'Requests without an answer.', () => this.#open.length)
    meter.gauge(`${name}_answer_bytes_in_flight`, 'Bytes of answers on their way.', () => this.#bytes.total)
  }

  close(): void {
    for (const sweeper of this.#sweepers) clearInterval(sweeper)
  }
}
