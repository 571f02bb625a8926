// A request with what is known of it, from its head to the last byte of its answer. Times are `performance.now()`.
import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { ProblemCode } from '../../../schemas/problems.ts'
import { requestMs } from '../../limits.ts'
import type { FailedOutcome } from '../../store/store.ts'
import type { Account } from './bytes-in-flight.ts'
import { readTrace, type Trace } from './request-ids.ts'

const addressWithPort = /(?<=^|[,\s])(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?(?=$|[,\s])/g

/** Some proxies name the port, too; addresses are what is trusted, counted and logged. */
function dropPorts({ headers }: IncomingMessage): void {
  const forwarded = headers['x-forwarded-for']
  if (forwarded?.includes(':'))
    headers['x-forwarded-for'] = String(forwarded).replace(addressWithPort, '$1$2')
}

export class Exchange {
  readonly reply: FastifyReply
  readonly raw: IncomingMessage
  readonly requestId: string
  readonly startMs = performance.now()
  readonly remoteAddress: string
  /** When the request has to be answered. */
  deadlineMs = this.startMs + requestMs
  /** The outcome that is reported when the deadline passes. */
  timeoutOutcome: FailedOutcome
  /** The id of the token that let the request pass, or that lacked a scope; never the token. */
  owner = ''
  /** Until when the token is believed. */
  grantedUntilMs = 0
  /** Bytes of the answer that are in flight, and the account that holds them. */
  bytes = 0
  account: Account | undefined
  /** True when the answer has headers of its own, beside those of every answer. */
  hasExtraHeaders = false
  /** Length of the answer's body, when that was not left to the framework. */
  bodyBytes: number | undefined
  /** The body of the answer, when that is a stream. */
  stream: { readonly sentBytes: number } | undefined
  /** Index among all open requests; -1 once the request has ended. */
  index = -1
  /** The status, or 499 when the client went away before it had the whole answer. */
  status = 0
  /** Why the request was refused, if it was. */
  problem: ProblemCode | undefined
  durationMs = 0
  /** Its span, when traces are on. */
  span: Trace | undefined

  constructor(reply: FastifyReply, requestId: string) {
    const { request } = reply
    dropPorts(request.raw)
    this.requestId = requestId
    this.reply = reply
    this.raw = request.raw
    this.remoteAddress = request.ip
    this.timeoutOutcome = request.raw.method === 'POST' ? 'nothing-added' : 'unread'
  }

  /** The request is answered, or its client gone. */
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

  /** The path of the matched route. Fastify builds it on every access, with much else. */
  get route(): string | undefined {
    return this.reply.request.routeOptions.url
  }

  /** The span of the request, or else the one that the client says it is part of. */
  get trace(): Trace | undefined {
    return this.span ?? readTrace(this.raw.headers.traceparent)
  }

  /** True when the client gave the request its id, which may hold a secret then. */
  get hasGivenId(): boolean {
    return this.requestId === this.raw.headers['x-request-id']
  }

  get token(): string | undefined {
    return this.owner || undefined
  }

  /** Bytes of the answer's body that were handed to the connection. */
  get sentBytes(): number {
    const { raw } = this.reply
    if (!raw.headersSent || this.raw.method === 'HEAD') return 0
    // The answer waited behind another one of its connection to the end.
    if (!raw.writableFinished && raw.socket === null) return 0
    return this.stream?.sentBytes ?? this.bodyBytes ?? Number(this.reply.getHeader('content-length') ?? 0)
  }
}

type Told =
  | 'requestId'
  | 'hasGivenId'
  | 'trace'
  | 'method'
  | 'url'
  | 'route'
  | 'status'
  | 'durationMs'
  | 'problem'
/** A request that was answered or abandoned, as logs and metrics see it. */
export type Access = Readonly<Pick<Exchange, Told | 'remoteAddress' | 'token' | 'sentBytes'>>
