// A request and its state, from its head to the last byte of its answer. Times are `performance.now()`.
import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { ProblemCode } from '../../../schemas/problems.ts'
import { requestMs } from '../../limits.ts'
import type { FailedOutcome } from '../../store/errors.ts'
import { readTrace, type Trace } from './request-ids.ts'

export class Exchange {
  readonly reply: FastifyReply
  readonly raw: IncomingMessage
  readonly requestId: string
  readonly startMs = performance.now()
  readonly remoteAddress: string
  /** Time by which the request has to be answered. */
  deadlineMs = this.startMs + requestMs
  /** The outcome that is reported when the deadline passes; `unread`: of one that only reads. */
  timeoutOutcome: FailedOutcome = 'unread'
  /** The id of the token that let the request pass, or that lacked a scope; never the token. */
  owner = ''
  /** Time up to which the token's grant may be used without another look-up. */
  grantedUntilMs = 0
  /** Bytes of the answer in flight. */
  bytes = 0
  /** Length of the answer's body, of a stream so far, unless the framework sends it. */
  bodyBytes: number | undefined
  /** Index among all open requests; -1 once the request has ended. */
  index = -1
  /** The status, or 499 when the client left before it had the whole answer. */
  status = 0
  /** The problem that the request was refused with, if it was. */
  problem: ProblemCode | undefined
  durationMs = 0
  /** The span, when traces are on. */
  span: Trace | undefined

  constructor(reply: FastifyReply, requestId: string, remoteAddress: string) {
    this.requestId = requestId
    this.reply = reply
    this.raw = reply.request.raw
    this.remoteAddress = remoteAddress
  }

  /** Ends the exchange: the request was answered, or its client is gone. */
  end(): void {
    const { raw } = this.reply
    this.index = -1
    this.status = raw.writableFinished ? raw.statusCode : 499
    this.durationMs = performance.now() - this.startMs
  }

  get method(): string {
    return this.raw.method as string
  }

  get url(): string {
    return this.raw.url as string
  }

  /** The path of the matched route, kept here because Fastify builds it on every access. */
  get route(): string | undefined {
    return this.reply.request.routeOptions.url
  }

  /** The request's span, or else the span that the client sent. */
  get trace(): Trace | undefined {
    return this.span ?? readTrace(this.raw.headers.traceparent)
  }

  /** True when the client chose the request's id, which may then hold a secret. */
  get hasGivenId(): boolean {
    return this.requestId === this.raw.headers['x-request-id']
  }

  /** Bytes of the answer's body handed to the connection. */
  get sentBytes(): number {
    const { raw } = this.reply
    if (!raw.headersSent || this.raw.method === 'HEAD') return 0
    // The answer was still waiting behind an earlier one of its connection.
    if (!raw.writableFinished && raw.socket === null) return 0
    return this.bodyBytes ?? Number(this.reply.getHeader('content-length') ?? 0)
  }
}
