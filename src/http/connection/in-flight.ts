// Requests in flight: each is reported when it ends, answered when it times out, and drained at a shutdown.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problems } from '../../../schemas/problems.ts'
import { lateSweepMs, listShare, openBytes, stalledSweepMs, turnMs } from '../../limits.ts'
import type { ConnectionLog } from '../../logging/connection-log.ts'
import type { Meter } from '../../runtime/meter.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { ProblemError } from '../problem-error.ts'
import { networkOf } from './address.ts'
import { connectionOf } from './connection.ts'
import { Exchange } from './exchange.ts'
import { Peers } from './peers.ts'
import { makeRequestIds } from './request-ids.ts'

type Carrier = IncomingMessage & { exchange: Exchange }

/** The exchange of a request. */
export function exchangeOf({ raw }: FastifyRequest): Exchange {
  return (raw as Carrier).exchange
}

/** True while the client is connected and its request has no answer. */
export function waits(reply: FastifyReply): boolean {
  return !reply.raw.headersSent && !reply.request.raw.socket.destroyed
}

/** `addressOf`: returns the address of a client; `maxBytes`: the most bytes of answers in flight. */
export type InFlightOptions = {
  log: ConnectionLog
  addressOf: (request: IncomingMessage) => string
  isDraining: () => boolean
  maxBytes: number
}

/**
 * Observes requests until their answers are out, and calls `report` for each. While `isDraining`, each answer closes
 * its connection, so that clients reconnect to another instance.
 */
export class InFlight {
  readonly #options: InFlightOptions
  readonly #report: (exchange: Exchange) => void
  /** An array rather than a Set: tables that a busy Set leaves behind keep their entries alive through collections. */
  readonly #open: Exchange[] = []
  readonly #closed: (this: ServerResponse) => void
  readonly #sweepers: NodeJS.Timeout[]
  /** Bytes of answers that are being sent or wait for slow clients: in all, and by token, of those that were valid. */
  #bytes = 0
  readonly #bytesOf = new Map<string, number>()
  readonly peers = new Peers()
  /** Takes the request's id from `X-Request-Id`, or makes one. */
  readonly requestId = makeRequestIds()

  constructor(options: InFlightOptions, report: (exchange: Exchange) => void) {
    this.#options = options
    this.#report = report
    const inFlight = this
    this.#closed = function closed() {
      inFlight.#ended((this.req as Carrier).exchange)
    }
    this.#sweepers = [
      setInterval(() => this.#answerLate(), lateSweepMs).unref(),
      setInterval(() => this.#cutStalled(), stalledSweepMs).unref(),
    ]
  }

  /** Begins to observe a request. */
  observe(request: FastifyRequest, reply: FastifyReply): Exchange {
    const connection = connectionOf(request.raw.socket)
    const requestId = this.requestId(request.raw.headers['x-request-id'])
    const exchange = new Exchange(reply, requestId, this.#options.addressOf(request.raw))
    ;(request.raw as Carrier).exchange = exchange
    exchange.index = this.#open.push(exchange) - 1
    connection.add(exchange)
    reply.raw.on('close', this.#closed)
    if (this.#options.isDraining()) connection.endAfter(exchange)
    return exchange
  }

  /**
   * Counts `bytes` for an answer until it is sent, or until another call corrects them. Throws `overloaded` when its
   * token, or without one its client's network, would hold more than `share` times what is left, so that there is always
   * room for others (the dynamic thresholds of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
   */
  hold(exchange: Exchange, bytes: number, share: number): void {
    const owner = exchange.owner || networkOf(exchange.remoteAddress)
    const more = bytes - exchange.bytes
    const held = (this.#bytesOf.get(owner) ?? 0) + more
    if (more > 0 && held > share * (this.#options.maxBytes - this.#bytes))
      throw new ProblemError(problems.tooManyBytes)
    if (held > 0) this.#bytesOf.set(owner, held)
    else this.#bytesOf.delete(owner)
    this.#bytes += more
    exchange.bytes = bytes
  }

  /**
   * Counts an answer that needs no token. Whether its client has taken it is known only when it closes the connection, so
   * beyond `openBytes` the connection is ended, and what it was sent is held until then. Throws `overloaded`.
   */
  holdOpen(exchange: Exchange, bytes: number): void {
    const connection = connectionOf(exchange.raw.socket)
    if (connection.openBytes + bytes > openBytes) {
      if (exchange.problem === undefined) this.hold(exchange, bytes, listShare)
      connection.untaken.push(exchange)
      connection.endAfter()
    }
    connection.openBytes += bytes
  }

  /** Begins to observe a connection. */
  connect(socket: Socket): void {
    const connection = this.peers.add(socket)
    // Bytes that came with the connection are read in the next turn of the event loop.
    setImmediate(() => setImmediate(() => connection.settle()))
    // For a socket that it has handed over, Node emits `close` of the first answer alone. Each that ends leaves the list.
    socket.once('close', () => {
      for (const exchange of [...connection.open]) this.#ended(exchange)
      for (const exchange of connection.untaken) this.hold(exchange, 0, 0)
      this.peers.remove(connection)
    })
  }

  #ended(exchange: Exchange): void {
    if (exchange.index < 0) return
    const last = this.#open.pop() as Exchange
    if (last !== exchange) {
      this.#open[exchange.index] = last
      last.index = exchange.index
    }
    exchange.end()
    if (exchange.bytes > 0 && exchange.owner !== '') this.hold(exchange, 0, 0)
    connectionOf(exchange.raw.socket).leave(exchange)
    this.#report(exchange)
  }

  /** Answers requests that timed out. One sweep over all costs less than a timer per request. */
  #answerLate(): void {
    const now = performance.now()
    const isLate = ({ deadlineMs, reply }: Exchange) => deadlineMs <= now && waits(reply)
    for (const { reply, timeoutOutcome } of this.#open.filter(isLate)) {
      /* c8 ignore next 4: it takes thousands that are late at one moment */
      if (performance.now() - now > turnMs) {
        setImmediate(() => this.#answerLate())
        return
      }
      reply.send(new StoreUnavailable(timeoutOutcome, 'a request timed out'))
    }
  }

  #cutStalled(): void {
    const now = performance.now()
    for (const socket of new Set(this.#open.map(({ raw }) => raw.socket))) {
      const connection = connectionOf(socket)
      const requestId = connection.open[0]?.requestId
      /* c8 ignore next: seen from outside, in a process of its own, by test/http/fairness.test.ts */
      if (connection.cutStalled(now)) this.#options.log.add(socket, { reason: 'stalled', requestId })
    }
  }

  /** Ends each connection with its last answer from now on; cuts those still open after `graceMs`. */
  drain(server: Server, graceMs: number): void {
    for (const { raw } of this.#open) connectionOf(raw.socket).endAfter()
    setTimeout(() => {
      for (const { raw, requestId } of [...this.#open]) {
        this.#options.log.add(raw.socket, { reason: 'stopping', requestId })
        // Without a reset, a client could mistake a partial answer for the whole.
        raw.socket.resetAndDestroy()
      }
      server.closeAllConnections()
    }, graceMs).unref()
  }

  /** Publishes the number of requests, and of the bytes of their answers. */
  show(meter: Meter): void {
    const name = 'plant_store'
    meter.gauge(`${name}_requests_in_flight`, 'Requests without an answer.', () => this.#open.length)
    meter.gauge(`${name}_answer_bytes_in_flight`, 'Bytes of answers on their way.', () => this.#bytes)
  }

  close(): void {
    for (const sweeper of this.#sweepers) clearInterval(sweeper)
  }
}
