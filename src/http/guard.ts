// What every request meets first, whatever its path: it is observed, and refused when it is no proper request.
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { FastifyReply, FastifyRequest, HTTPMethods, onRequestHookHandler } from 'fastify'
import { maxUrlBytes } from '../limits.ts'
import { beginAnswer } from './answer.ts'
import type { Connection } from './connections.ts'
import type { Exchange } from './exchange.ts'
import { exchangeOf, type InFlight } from './in-flight.ts'
import { invalid, ProblemError } from './problem-error.ts'

const methods: HTTPMethods[] = ['GET', 'HEAD', 'POST']

/** Makes the root hooks and the not-found handler. `cors`: whether preflights are answered elsewhere. */
export function guardRequests(inFlight: InFlight, { cors }: { cors: boolean }) {
  function observe(request: FastifyRequest, reply: FastifyReply): Exchange | undefined {
    const exchange = inFlight.observe(request, reply)
    if (exchange) beginAnswer(reply, exchange)
    return exchange
  }

  /** What is wrong with a request that the framework refuses before any hook; undefined when it is not answered. */
  function refuse(error: Error, request: FastifyRequest, reply: FastifyReply): Error | undefined {
    const exchange = observe(request, reply)
    return exchange && (findFlaw(exchange) ?? error)
  }

  /** A request waits here for its turn on its connection. One behind the end of its connection waits for ever. */
  const onRequest: onRequestHookHandler = (request, reply, done) => {
    const exchange = observe(request, reply)
    /* c8 ignore next: what is parsed behind the end of a connection depends on how packets fall */
    if (!exchange) return
    const flaw = findFlaw(exchange)
    exchange.via.enter(exchange, () => done(flaw))
  }

  /** RFC 9110, section 9.3.7. */
  function answerOptions(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    const allowed = allowedMethods(request)
    if (allowed.length === 0) {
      done(describeMiss(request))
      return
    }
    reply.header('allow', allowed.join(', '))
    if (cors && request.headers['access-control-request-method'] !== undefined) done()
    else reply.code(204).send()
  }

  /** Before the plugin that answers preflights, which would answer on any path. */
  const beforeCors: onRequestHookHandler = (request, reply, done) => {
    exchangeOf(request).gathers = true
    if (request.method === 'OPTIONS') answerOptions(request, reply, done)
    else done()
  }

  /** A request without a route is answered as such, whatever its body is. */
  const requireRoute: onRequestHookHandler = (request, reply, done) => {
    if (!cors && request.method === 'OPTIONS') answerOptions(request, reply, done)
    else done(request.is404 ? describeMiss(request) : undefined)
  }

  /* c8 ignore next 3: the hook before has answered; the framework runs it only where there is a handler */
  function notFound(request: FastifyRequest): never {
    throw describeMiss(request)
  }

  return { refuse, onRequest, beforeCors, requireRoute, notFound }
}

function describeMiss(request: FastifyRequest): ProblemError {
  const allowed = allowedMethods(request)
  // A route that has the method was there, and found nothing itself.
  if (allowed.length === 0 || allowed.includes(request.method as HTTPMethods))
    return new ProblemError('not-found', 'There is nothing at this path.')
  const last = allowed.at(-1)
  const names = `${allowed.slice(0, -1).join(', ')} and ${last} are`
  return new ProblemError('method-not-allowed', `Only ${names} allowed here.`, {
    headers: { allow: allowed.join(', ') },
  })
}

function allowedMethods(request: FastifyRequest): HTTPMethods[] {
  const url = request.url.split('?', 1)[0] as string
  return methods.filter((method) => request.server.findRoute({ url, method }) !== null)
}

/** What makes a request unfit to be served at all, as far as its head tells. */
function findFlaw(exchange: Exchange): ProblemError | undefined {
  const { raw, via } = exchange
  const { url, headers, httpVersionMajor: major, httpVersionMinor: minor } = raw
  // RFC 9110, section 7.8: ours to disregard. Node loses what follows it in the same packet.
  if (headers.upgrade !== undefined) via.endAfter(exchange)
  if ((url as string).length > maxUrlBytes) return new ProblemError('uri-too-long', 'The URL is too long.')
  if (major !== 1 || minor > 1) return unframed(exchange, 'The version of HTTP must be 1.0 or 1.1.')
  // RFC 9112, sections 6.1 and 6.3.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (minor === 0 || coding.toLowerCase() !== 'chunked'))
    return unframed(exchange, 'The only transfer coding that is understood is chunked, in HTTP/1.1.')
  if ((url as string).includes('#')) return malformed('A request target has no fragment.')
  // RFC 9110, section 10.1.1: in HTTP/1.0 it is disregarded.
  if (headers.expect !== undefined && minor > 0 && headers.expect.toLowerCase() !== '100-continue')
    return new ProblemError('expectation-failed', 'The only expectation that is understood is 100-continue.')
  return findHeaderFlaw(raw, via)
}

/** Where a message that is framed like this ends is anybody's guess: nothing after it is read. */
function unframed(exchange: Exchange, detail: string): ProblemError {
  exchange.via.endAfter(exchange)
  return malformed(detail)
}

/** Of header lines that say who is asked, and by whom, there may be one each. */
function findHeaderFlaw(raw: IncomingMessage, via: Connection): ProblemError | undefined {
  const { rawHeaders } = raw
  let hosts = 0
  let authorizations = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations++
  }
  if (hosts !== 1 || raw.headers.host !== via.host) {
    const flaw = findHostFlaw(raw, hosts)
    if (flaw) return flaw
    via.host = raw.headers.host
  }
  return authorizations > 1 ? twice('Authorization') : undefined
}

/** RFC 9112, section 3.2: one line, which only HTTP/1.0 may leave out. */
function findHostFlaw(
  { headers, httpVersionMinor }: IncomingMessage,
  lines: number,
): ProblemError | undefined {
  if (lines > 1) return twice('Host')
  if (lines === 0 && httpVersionMinor > 0)
    return invalid([{ code: 'required', detail: 'is required', parameter: 'Host' }])
  if (lines === 1 && !isHost(headers.host as string))
    return invalid([{ code: 'format', detail: 'must be a host, or a host and a port', parameter: 'Host' }])
  return undefined
}

const hostForm = /^(?:\[([0-9A-Za-z.:]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::(\d{0,5}))?$/

/** RFC 9110, section 7.2: uri-host [ ":" port ]. */
function isHost(text: string): boolean {
  const parts = hostForm.exec(text)
  return parts !== null && (parts[1] === undefined || isIPv6(parts[1])) && Number(parts[2] ?? 0) <= 65_535
}

function malformed(detail: string): ProblemError {
  return new ProblemError('invalid', detail)
}

function twice(header: string): ProblemError {
  return invalid([{ code: 'duplicate', detail: 'must be given once', parameter: header }])
}
