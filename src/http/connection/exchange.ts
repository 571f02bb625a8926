// A request with what is known of it, from its head to the last byte of its answer. Times are `performance.now()`.
import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import { requestMs } from '../limits.ts'
import type { Lost } from '../store/store.ts'
import type { Account } from './bytes-in-flight.ts'
import type { Connection } from './connections.ts'
import type { ProblemCode } from './problem-error.ts'
import { readTrace, type Trace } from './request-ids.ts'

/** One answered (or abandoned) request. */
export type Access = {
  readonly requestId: string
  /** The trace that the client says it is part of. */
  readonly trace: Trace | undefined
  readonly method: string
  readonly url: string
  /** The path of the route that was matched. */
  readonly route: string | undefined
  /** The status, or 499 when the client went away before it had the whole answer. */
  readonly status: number
  readonly durationMs: number
  /** Why it was refused, if it was. */
  readonly problem: ProblemCode | undefined
  readonly remoteAddress: string
  /** The id of the token that let it pass, or that lacked a scope; never the token. */
  readonly token: string | undefined
  /** How much of the answer's body was handed to the connection. */
  readonly sentBytes: number
}

export class Exchange implements Access {
  readonly reply: FastifyReply
  readonly raw: IncomingMessage
  readonly via: Connection
  readonly requestId: string
  readonly startMs = performance.now()
  readonly remoteAddress: string
  /** When it has to be answered. */
  deadlineMs = Number.POSITIVE_INFINITY
  /** What is said when it was not. */
  lost: Lost
  /** The id of the token that it came with. */
  owner = ''
  /** How many bytes of its answer are in flight, and on whose account. */
  bytes = 0
  account: Account | undefined
  /** Whether its answer has headers that were gathered on the way, beside those of every answer. */
  gathers = false
  /** How long the body of its answer is, when that was not left to the framework. */
  bodyBytes: number | undefined
  /** The body of its answer, when that is a stream. */
  stream: { readonly sentBytes: number } | undefined
  /** Whether its connection has given it its turn. */
  working = false
  /** Where it is among all that are open; -1 when it is not any more. */
  place = -1
  status = 0
  problem: ProblemCode | undefined
  durationMs = 0

  constructor(reply: FastifyReply, via: Connection, requestId: string) {
    const { request } = reply
    this.requestId = requestId
    this.reply = reply
    this.raw = request.raw
    this.via = via
    this.remoteAddress = request.ip
    this.lost = request.raw.method === 'POST' ? 'nothing-added' : 'unread'
  }

  /** Its turn has come: from here on it has to be answered in time. */
  begin(nowMs: number): void {
    this.working = true
    this.deadlineMs = nowMs + requestMs
  }

  /** It is answered, or its client gone. */
  end(): void {
    const { raw } = this.reply
    this.place = -1
    this.status = raw.writableFinished ? raw.statusCode : 499
    this.durationMs = performance.now() - this.startMs
  }

  get method(): string {
    return this.raw.method as string
  }

  get url(): string {
    return this.raw.url as string
  }

  /** Fastify makes it anew each time, with much else. */
  get route(): string | undefined {
    return this.reply.request.routeOptions.url
  }

  get trace(): Trace | undefined {
    return readTrace(this.raw.headers.traceparent)
  }

  get token(): string | undefined {
    return this.owner || undefined
  }

  get sentBytes(): number {
    const { raw } = this.reply
    if (!raw.headersSent || this.raw.method === 'HEAD') return 0
    // It waited behind another answer of its connection to the end.
    if (!raw.writableFinished && raw.socket === null) return 0
    return this.stream?.sentBytes ?? this.bodyBytes ?? Number(this.reply.getHeader('content-length') ?? 0)
  }
}
