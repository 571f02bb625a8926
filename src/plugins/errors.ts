// Responds to every failure with a problem (RFC 9457): errors, unknown paths and methods, ambiguous framing, and bytes
// that are not HTTP.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Fault, Problem } from '../../schemas/problem-details.ts'
import { describeProblem, type KnownProblem, type ProblemCode, problems } from '../../schemas/problems.ts'
import { makeOutage } from '../outage.ts'
import { describeFaults } from '../plants/faults.ts'
import { invalid, ProblemError } from '../problem-error.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { nosniff, pathOf } from './requests.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * `pending`: the latest addition or long list of each connection. While it is unfinished, malformed bytes behind the
     * request must not be answered: the client would mistake that 400 for this response, or for a part of the list.
     * `refused`: connections with an ambiguous request, or with an upgrade. Later requests on them, which Node may have
     * read already, are ignored.
     */
    connections: { pending: WeakMap<Socket, ServerResponse>; refused: WeakSet<Socket> }
  }
  interface FastifyReply {
    /** The problem in the response. */
    problem: ProblemCode | undefined
  }
}

/** Problems for errors of Node's parser, of Fastify and of its plugins. */
const frameworkProblems: Record<string, KnownProblem> = {
  ERR_HTTP_REQUEST_TIMEOUT: problems.timeout,
  HPE_HEADER_OVERFLOW: problems.headTooLarge,
  HPE_INVALID_EOF_STATE: problems.incomplete,
  FST_ERR_BAD_URL: problems.badPath,
  FST_ERR_CTP_BODY_TOO_LARGE: problems.bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: problems.notJson,
  FST_STATIC_FORBIDDEN_PATH: problems.notFound,
}

const closing = { connection: 'close' }
const ambiguous = (code: Fault['code'], parameter: string, detail: string) =>
  new ProblemError(problems.faults(1), { errors: [{ code, detail, parameter }], headers: closing })
const otherCoding = ambiguous('format', 'Transfer-Encoding', 'must be chunked, which requires HTTP/1.1')
const badHost = (code: Fault['code']) => ambiguous(code, 'Host', 'must be given exactly once, and be valid')

/** An import of `node:http` would also load undici, which takes a twentieth of the startup time. */
const { METHODS } = process.getBuiltinModule('node:http')

/** Time for a client to read the error response before the connection is destroyed. */
const lingerMs = 5000
/** The error of a CONNECT, whose target is not a path. */
const tunnel = Object.assign(new Error('CONNECT'), { code: 'FST_ERR_BAD_URL' })
/** Matches a host and port (RFC 3986, section 3.2.2), but no comma, which may join two hosts. */
const wellFormedHost = /^[\w.:[\]%~!$&'()*+;=-]*$/
/** Maximum length of a request target. */
const maxUrlLength = 8 * 1024

/** `basePath`: prefix of the problem pages; ends with a slash. */
export const errors = fp<{ basePath: string }>(async (app, { basePath }) => {
  const failures = makeOutage(app.log, { failed: 'requests failed because the store was unavailable' })
  const refusals = makeOutage(app.log, { failed: 'requests were refused because too many were in progress' })
  // Node accepts the methods of RTSP, for which Fastify would log its routes, and run no hook.
  app.server.prependListener('request', (request) => {
    if (!METHODS.includes(String(request.method))) request.method = 'TRACE'
  })
  // Node would send 100 Continue before the token is verified, and refuse other expectations without problem details.
  const serve: RequestListener = (request, answer) => void app.server.emit('request', request, answer)
  app.server.on('checkContinue', serve).on('checkExpectation', serve)
  // Node would close the connection without a response. It removes its own listener from the socket.
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => {})
    app.server.emit('clientError', tunnel, socket)
  })
  app.decorateReply('problem', undefined)
  app.decorate('connections', { pending: new WeakMap(), refused: new WeakSet() })

  // Before CORS, which responds to OPTIONS. Without `done`, a later request on a refused connection stops here.
  app.addHook('onRequest', (request, reply, done) => {
    if (!app.connections.refused.has(request.raw.socket)) done(findHeadError(request, reply))
  })

  app.setErrorHandler((error: FastifyError, request, reply) => {
    const answered = toProblemError(error, request)
    const body = buildBody(answered, basePath)
    if (body.status >= 500) logFailure(error, request.id)
    reply.problem = answered.problem.code
    if (body.status === 503) reply.header('retry-after', '1')
    // Fastify sets `connection: close` for a body that it cannot parse. Keep the connection: otherwise a client that is
    // still sending would lose this response, and those to pipelined requests.
    if (reply.raw.shouldKeepAlive && reply.hasHeader('connection') && !reply.raw.hasHeader('connection'))
      reply.header('connection', 'keep-alive')
    return reply
      .code(body.status)
      .headers({ 'cache-control': 'no-store', ...answered.details.headers })
      .type('application/problem+json')
      .send(body)
  })

  // For `reply.callNotFound()`: `routeErrors` refuses requests without a route.
  app.setNotFoundHandler((request, reply) => reply.send(makeRouteError(request)))

  /** Logs each internal error with its stack; failures and refusals of the store at most every few seconds. */
  function logFailure(error: Error, requestId: string): void {
    // The loader of the keys logs an unavailable issuer.
    if (error instanceof ProblemError) return
    if (!(error instanceof StoreUnavailable)) app.log.error({ err: error, requestId }, 'a request failed')
    else if (error.outcome === 'overloaded') refusals.reportFailure(error, { requestId })
    else if (!error.isQuiet) failures.reportFailure(error, { requestId, outcome: error.outcome })
  }
})

/**
 * Refuses a request with 404, 405 or 414 before its body is read. Register it after CORS, so that browsers can read the
 * response.
 */
export const routeErrors = fp(async (app) => {
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.url.length > maxUrlLength) done(new ProblemError(problems.urlTooLong))
    else done(request.is404 ? makeRouteError(request) : undefined)
  })
})

/** Returns the error for a request without a route: 405 if its path has other methods, otherwise 404. */
function makeRouteError({ server, url, method }: FastifyRequest): ProblemError {
  const path = pathOf(url)
  // CORS has a route for the OPTIONS of every path.
  const methods = server.supportedMethods.filter((one) => one !== 'OPTIONS')
  const allowed = methods.filter((one) => server.findRoute({ url: path, method: one }) !== null)
  // An allowed method gets here if its handler found nothing, such as a missing static file.
  if (allowed.length === 0 || allowed.includes(method)) return new ProblemError(problems.notFound)
  return new ProblemError(problems.methodNotAllowed(allowed), { headers: { allow: allowed.join(', ') } })
}

/** Returns an error, which closes the connection, for a request whose framing or host is ambiguous. */
function findHeadError({ raw, server: { connections } }: FastifyRequest, reply: FastifyReply) {
  const { rawHeaders, httpVersionMinor, headers, socket } = raw
  // Node drops what follows an ignored upgrade in the same read, so the next bytes may begin within a request.
  if (headers.upgrade !== undefined) {
    connections.refused.add(socket)
    reply.raw.setHeader('connection', 'close')
  }
  const { 'transfer-encoding': coding } = headers
  // RFC 9112, section 6.1. Node does not decode codings before chunked, and refuses any other final coding itself.
  const isOther = coding !== undefined && (httpVersionMinor !== 1 || /,\s*chunked$/i.test(coding))
  const hosts = rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length
  // RFC 9112, section 3.2.
  const isValid =
    hosts === 1 ? wellFormedHost.test(String(headers.host)) : hosts === 0 && httpVersionMinor === 0
  if (!isOther && isValid) return undefined
  connections.refused.add(socket)
  return isOther ? otherCoding : badHost(hosts === 0 ? 'required' : 'format')
}

function toProblemError(error: FastifyError, request: FastifyRequest): ProblemError {
  if (error instanceof ProblemError) return error
  // The problem states the outcome, and reveals no internals.
  if (error instanceof StoreUnavailable) return new ProblemError(problems[error.outcome])
  if (error.validation) return invalid(findFaults(request))
  const other = Number(error.statusCode) < 500 ? problems.incomplete : problems.internal
  return new ProblemError(frameworkProblems[error.code] ?? other)
}

/** Validates both the body and the query of a request, because Fastify stops at the first invalid part. */
function findFaults(request: FastifyRequest): Fault[] {
  return (['body', 'querystring'] as const).flatMap((part) => {
    const validate = request.getValidationFunction(part)
    const value = part === 'body' ? request.body : request.query
    return validate === undefined || validate(value) ? [] : describeFaults(validate.errors ?? [], part)
  })
}

/**
 * Returns the Fastify options that replace the built-in error responses of Node and Fastify with problems. `count`:
 * called for each response to a malformed request, for which no hook runs.
 */
export function answerWithProblems(basePath: string, count = (_code: ProblemCode) => {}) {
  return {
    clientErrorHandler(this: FastifyInstance, error: NodeJS.ErrnoException, socket: Socket) {
      if (this.connections.pending.get(socket)?.writableFinished === false) socket.resetAndDestroy()
      // The connection failed, or already has a final response.
      else if (error.syscall !== undefined || !socket.writable) socket.destroy()
      else count(answerClientError(error, socket, basePath))
    },
    frameworkErrors(error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
      request.server.logWhenEnded?.(request, reply)
      const answer = reply.header(...nosniff).header('x-request-id', request.id)
      request.server.errorHandler(findHeadError(request, reply) ?? error, request, answer)
    },
  }
}

/** Responds to a malformed or too slow request, which does not reach Fastify. Returns the problem. */
function answerClientError({ code = '' }: NodeJS.ErrnoException, socket: Socket, basePath: string) {
  const known = frameworkProblems[code] ?? problems.notHttp
  const body = buildBody(new ProblemError(known), basePath)
  const text = JSON.stringify(body)
  const head = [
    // Importing `node:http` for its phrases would also load undici, which takes a twentieth of the startup time.
    `HTTP/1.1 ${body.status} ${body.status === 400 ? 'Bad Request' : body.title}`,
    // RFC 9110, section 6.6.1.
    `date: ${new Date().toUTCString()}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(text)}`,
    nosniff.join(': '),
    'cache-control: no-store',
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`)
  // The client may continue to send.
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
  return known.code
}

function buildBody({ problem: { code, detail }, details: { errors } }: ProblemError, basePath: string) {
  const body: Problem = describeProblem({ code, detail }, basePath)
  if (code === 'invalid-request') body.errors = errors ?? [{ code: 'format', detail, pointer: '' }]
  return body
}
