// The first hooks of every request: observe it, and refuse it when its head is not valid.
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, onRequestHookHandler, onSendHookHandler } from 'fastify'
import type { Fault } from '../../schemas/problem.ts'
import { type KnownProblem, problems } from '../../schemas/problems.ts'
import { headBytes, maxUrlBytes } from '../limits.ts'
import type { TimeSlices } from '../runtime/time-slices.ts'
import { answerHeaders } from './answer.ts'
import { connectionOf } from './connection/connection.ts'
import type { Exchange } from './connection/exchange.ts'
import { exchangeOf, type InFlight } from './connection/in-flight.ts'
import type { Trace } from './connection/request-ids.ts'
import { invalid, ProblemError } from './problem-error.ts'

const pieceBytes = 64 * 1024

/**
 * `methods`: all that a path may have; `slices`: schedule requests in a row; `cors`: the CORS plugin answers preflights;
 * `beginSpan`: begins the span of a request, when traces are on.
 */
export type GuardOptions = {
  methods: readonly string[]
  slices: TimeSlices
  cors: boolean
  beginSpan?: ((traceparent?: string) => Trace) | undefined
}

/** Makes the root hooks. */
export function guardRequests(inFlight: InFlight, { methods, slices, cors, beginSpan }: GuardOptions) {
  function observe(request: FastifyRequest, reply: FastifyReply): Exchange {
    const exchange = inFlight.observe(request, reply)
    if (beginSpan) exchange.span = beginSpan(request.headers.traceparent as string | undefined)
    return exchange
  }

  /** Handles a request that the framework refuses before any hook. */
  function refuse(error: Error, request: FastifyRequest, reply: FastifyReply): Error {
    const exchange = observe(request, reply)
    reply.headers(answerHeaders(exchange.requestId))
    return findFlaw(exchange) ?? error
  }

  const onRequest: onRequestHookHandler = (request, reply, done) => {
    const flaw = findFlaw(observe(request, reply))
    const { begun, open, socket } = connectionOf(request.raw.socket)
    if (begun === 1 && open.length === 1) begin()
    // Thousands of requests in a row, in one turn, would keep others waiting.
    else slices.run(() => socket.destroyed || begin(), 'requests in a row')

    function begin(): void {
      if (request.method === 'OPTIONS' && !flaw) answerOptions(request, reply, done)
      else done(flaw)
    }
  }

  const onSend: onSendHookHandler = (request, reply, payload, done) => {
    const exchange = exchangeOf(request)
    reply.headers(answerHeaders(exchange.requestId))
    // RFC 9110, section 8.6: the CORS plugin sends one with a preflight's 204.
    if (reply.statusCode === 204) reply.removeHeader('content-length')
    let refused: Error | undefined
    try {
      if (exchange.owner === '' && exchange.index >= 0) inFlight.holdOpen(exchange, sizeOf(request, payload))
    } catch (error) {
      refused = error as Error
      reply.removeHeader('etag').removeHeader('content-encoding')
    }
    if (!reply.raw.shouldKeepAlive) reply.header('connection', 'close')
    if (refused) done(refused)
    else if (request.method !== 'HEAD' && payload instanceof Buffer && payload.length > pieceBytes) {
      reply.header('content-length', payload.length)
      done(null, Readable.from(cut(payload)))
    } else done()
  }

  /** Answers OPTIONS (RFC 9110, section 9.3.7), but for preflights of a known path. */
  function answerOptions(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    const allowed = allowedMethods(request, methods)
    if (allowed.length === 0) done(describeMiss(request, methods))
    else {
      reply.header('allow', allowed.join(', '))
      if (cors && request.headers['access-control-request-method'] !== undefined) done()
      else reply.code(204).send()
    }
  }

  /** Refuses a request without a route before its body is looked at. */
  const requireRoute: onRequestHookHandler = (request, _, done) =>
    done(request.is404 ? describeMiss(request, methods) : undefined)

  return { refuse, onRequest, onSend, requireRoute }
}

function describeMiss(request: FastifyRequest, methods: readonly string[]): ProblemError {
  const allowed = allowedMethods(request, methods)
  // The route exists, and its handler found nothing.
  if (allowed.length === 0 || allowed.includes(request.method)) return new ProblemError(problems.nothingHere)
  return new ProblemError(problems.otherMethods(allowed), { headers: { allow: allowed.join(', ') } })
}

function allowedMethods(request: FastifyRequest, methods: readonly string[]): readonly string[] {
  if (request.url === '*') return methods
  const url = request.url.split('?', 1)[0] as string
  return methods.filter((method) => request.server.findRoute({ url, method: method as 'GET' }) !== null)
}

/** Cuts a large document into pieces: a client counts as reading when it has taken one of them. */
function* cut(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

/** Approximate size of an answer. */
function sizeOf({ method }: FastifyRequest, payload: unknown): number {
  return headBytes + (method === 'HEAD' || payload == null ? 0 : Buffer.byteLength(payload as Buffer))
}

/** Finds a fault in the head for which a request cannot be served at all. */
function findFlaw(exchange: Exchange): ProblemError | undefined {
  const { raw } = exchange
  const { method, url, headers, httpVersionMajor: major, httpVersionMinor: minor } = raw
  // RFC 9110, section 7.8: a server may ignore it. Node loses what follows it in the same packet.
  if (headers.upgrade !== undefined) connectionOf(raw.socket).endAfter(exchange)
  if ((url as string).length > maxUrlBytes) return new ProblemError(problems.urlTooLong)
  if (major !== 1 || minor > 1) return unframed(exchange, problems.httpVersion)
  // RFC 9112, sections 6.1 and 6.3.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (minor === 0 || coding.toLowerCase() !== 'chunked'))
    return unframed(exchange, problems.transferCoding)
  if ((url as string).includes('#')) return new ProblemError(problems.fragment)
  // RFC 9112, section 3.2.4: the router would take what follows an asterisk for a path.
  if ((url as string).startsWith('*') && `${method} ${url}` !== 'OPTIONS *')
    return new ProblemError(problems.nothingHere)
  // RFC 9110, section 10.1.1: HTTP/1.0 has no expectations.
  if (headers.expect !== undefined && minor > 0 && headers.expect.toLowerCase() !== '100-continue')
    return new ProblemError(problems.expectation)
  const fault = findHeaderFault(raw)
  return fault && invalid([fault])
}

/** Refuses a message whose end is unknown: nothing behind it is read. */
function unframed(exchange: Exchange, problem: KnownProblem): ProblemError {
  connectionOf(exchange.raw.socket).endAfter(exchange)
  return new ProblemError(problem)
}

/**
 * Finds a second Host or Authorization, or a missing or malformed Host: one line is required, except in HTTP/1.0
 * (RFC 9112, section 3.2).
 */
function findHeaderFault({ rawHeaders, headers, httpVersionMinor }: IncomingMessage): Fault | undefined {
  let hosts = 0
  let authorizations = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations++
  }
  if (hosts > 1) return twice('Host')
  if (hosts === 0 && httpVersionMinor > 0)
    return { code: 'required', detail: 'is required', parameter: 'Host' }
  if (hosts === 1 && !isHost(headers.host as string))
    return { code: 'format', detail: 'must be a host, or a host and a port', parameter: 'Host' }
  return authorizations > 1 ? twice('Authorization') : undefined
}

const hostForm = /^(?:\[([0-9A-Za-z.:]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::(\d{0,5}))?$/

/** True for uri-host [ ":" port ] (RFC 9110, section 7.2). */
function isHost(text: string): boolean {
  const parts = hostForm.exec(text)
  return parts !== null && (parts[1] === undefined || isIPv6(parts[1])) && Number(parts[2] ?? 0) <= 65_535
}

function twice(parameter: string): Fault {
  return { code: 'duplicate', detail: 'must be given once', parameter }
}
