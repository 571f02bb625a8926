// What happens around every request: its access line, its count, and its part in a quiet shutdown.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { requestMs } from '../limits.ts'
import type { Lost } from '../store/store.ts'

/** One answered (or abandoned) request. */
export type Access = {
  method: string
  url: string
  /** The status, or 499 when the client went away before it had the whole answer. */
  status: number
  durationMs: number
  remoteAddress: string | undefined
}

/** A request with what is known of it. `deadlineMs`, of `performance.now()`: when it has to be answered. */
export type Exchange = IncomingMessage & { deadlineMs: number; lost: Lost }

/** The exchange that a reply belongs to. */
export function exchangeOf(reply: FastifyReply): Exchange {
  return reply.request.raw as Exchange
}

/** Whether the client is still there, and its request without an answer. */
export function waits(reply: FastifyReply): boolean {
  return !reply.raw.headersSent && !reply.request.raw.socket.destroyed
}

type Observed = ServerResponse<IncomingMessage> & { startMs: number; remoteAddress: string; place: number }

/** Observes requests until their answers are out, and tells `report` of each. */
export class Requests {
  readonly #report: (access: Access) => void
  /** An array and not a Set: the tables that a busy Set leaves behind keep what was in them through many collections. */
  readonly #open: Observed[] = []
  readonly #answeredEarly = new WeakSet<object>()
  readonly #closed: (this: Observed) => void

  constructor(report: (access: Access) => void) {
    this.#report = report
    const requests = this
    this.#closed = function closed() {
      requests.#ended(this)
    }
  }

  observe(request: FastifyRequest, response: ServerResponse): void {
    const observed = response as Observed
    observed.startMs = performance.now()
    const exchange = request.raw as Exchange
    exchange.deadlineMs = observed.startMs + requestMs
    exchange.lost = request.method === 'POST' ? 'nothing-added' : 'unread'
    observed.remoteAddress = request.ip
    observed.place = this.#open.push(observed) - 1
    observed.on('close', this.#closed)
  }

  #ended(response: Observed): void {
    const last = this.#open.pop() as Observed
    if (last !== response) {
      this.#open[response.place] = last
      last.place = response.place
    }
    const { method = '', url = '' } = response.req
    const status = response.writableFinished ? response.statusCode : 499
    const durationMs = performance.now() - response.startMs
    if (!response.req.complete) this.#answeredEarly.add(response.req.socket)
    this.#report({ method, url, status, durationMs, remoteAddress: response.remoteAddress })
  }

  /** Whether the last answer on a socket went out before all of its request had come in. */
  answeredEarly(socket: object): boolean {
    return this.#answeredEarly.has(socket)
  }

  /** The latest answer still to come to a request that came in whole on a socket. */
  pending(socket: object): ServerResponse | undefined {
    let latest: ServerResponse | undefined
    for (const response of this.#open)
      if (response.req.socket === socket && response.req.complete) latest = response
    return latest
  }

  /** From now on each answer closes its connection; after `graceMs` those still open are cut. */
  drain(server: Server, graceMs: number): void {
    for (const response of this.#open) response.shouldKeepAlive = false
    setTimeout(() => server.closeAllConnections(), graceMs).unref()
  }
}
