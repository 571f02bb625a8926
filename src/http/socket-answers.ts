// Answers below the router: bytes that are not a valid request get problem details, too.

import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { problems } from '../../schemas/problems.ts'
import { maxUrlBytes } from '../limits.ts'
import type { ConnectionLog } from '../logging/connection-log.ts'
import { answerHeaders } from './answer.ts'
import { type Connection, connectionOf } from './connection/connection.ts'
import { endGently } from './connection/end-gently.ts'
import type { Exchange } from './connection/exchange.ts'
import type { InFlight } from './connection/in-flight.ts'
import { ProblemError } from './problem-error.ts'
import type { DescribeProblem } from './problems.ts'

/** Not an import of node:http, which would read all its exports and load undici: 60 ms and 8 MiB per thread. */
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** Without a packet, it is about the time or the socket; with `syscall`, the operating system's. */
type ClientError = NodeJS.ErrnoException & { reason?: string; rawPacket?: unknown; bytesParsed?: number }

/** Parts of the service that answers below the router need. */
export type SocketContext = {
  inFlight: InFlight
  log: ConnectionLog
  describeProblem: DescribeProblem
  corsHeaders: (head: string) => Record<string, string>
}

/** Makes the handler for requests that the HTTP parser could not read, or did not get in time. */
export function makeClientErrorHandler({ inFlight, log, describeProblem, corsHeaders }: SocketContext) {
  const broken = new WeakSet<Socket>()
  return function handleClientError(error: ClientError, socket: Socket): void {
    const { code, bytesParsed, syscall } = error
    const packet = (error.rawPacket ?? Buffer.alloc(0)) as Buffer
    // The connection itself failed, so that there is nobody to answer.
    if (syscall !== undefined) return void socket.destroy()
    const connection = connectionOf(socket)
    // RFC 9112, section 9.6: nothing is read behind a request with `Connection: close`; its answer is still to come.
    if (code === 'HPE_CLOSED_CONNECTION') return void connection.end(() => {})
    if (broken.has(socket)) return
    broken.add(socket)
    const { latest } = connection
    const problem = toProblem(error, packet)
    if (latest && !latest.raw.complete) return void endBody(latest, problem)
    const requestId = inFlight.requestId()
    const described = describeProblem(problem)
    Object.assign(described.headers, corsHeaders(String(packet)))
    log.add(socket, { reason: String(code), status: described.status, requestId })
    // The answer to a HEAD has no body, as far as this packet shows. Behind the end of a head, the fault is in a later
    // request.
    const parsed = packet.toString('latin1', 0, bytesParsed)
    const isHead = parsed.startsWith('HEAD ') && !parsed.includes('\r\n\r\n')
    // Answer the valid requests before it first.
    connection.end(() => endWithProblem(socket, described, { requestId, isHead }))
  }
}

/** Answers a request whose body cannot be read to its end, unless it has been answered already. */
function endBody(exchange: Exchange, problem: ProblemError): void {
  const { reply, raw } = exchange
  // Let an answer under way finish: the client could mistake a partial one for the whole.
  if (exchange.index < 0) return void raw.socket.destroySoon()
  connectionOf(raw.socket).endAfter(exchange)
  if (!reply.raw.headersSent) reply.send(problem)
}

function toProblem(error: ClientError, packet: Buffer): ProblemError {
  const { code } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ProblemError(problems.late)
  if (hasOtherMethod(error, packet)) return new ProblemError(problems.otherMethod)
  if (code !== 'HPE_HEADER_OVERFLOW') return new ProblemError(problems.notHttp)
  const isTarget = endsInTarget(packet.toString('latin1'))
  return new ProblemError(isTarget ? problems.urlTooLong : problems.headTooLarge)
}

/** The rest of a request line, from the character of the method, or behind it, at which the parser stopped. */
const restOfLine = /(?:(?<=[!#$%&'*+.^`|~\w-])|[!#$%&'*+.^`|~\w-])[!#$%&'*+.^`|~\w-]* \S+ HTTP\/1\.[01]\r?\n/y

/** True for a method that HTTP does not define (RFC 9110, section 9.1), as far as the packet with the fault shows. */
function hasOtherMethod({ code, reason, bytesParsed }: ClientError, packet: Buffer): boolean {
  // The parser knows the methods of RTSP, too.
  if (reason === 'Invalid method for HTTP/x.x request') return true
  restOfLine.lastIndex = Number(bytesParsed)
  return code === 'HPE_INVALID_METHOD' && restOfLine.test(packet.toString('latin1'))
}

/** True when the target alone made a head too large, as far as the packet with the fault shows. */
function endsInTarget(packet: string): boolean {
  const [, target] = /^[A-Z-]+ (\S*)/.exec(packet) ?? []
  // A packet that does not begin with a request line is the middle of a target when it has no white space.
  return target === undefined ? !/\s/.test(packet) : target.length > maxUrlBytes
}

/** Writes an answer to the socket itself, and ends the connection. `isHead`: without a body. */
export function endWithProblem(
  socket: Socket,
  { status, problem, headers }: ReturnType<DescribeProblem>,
  { requestId, isHead = false }: { requestId: string; isHead?: boolean },
): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify(problem)
  const all = {
    ...headers,
    ...answerHeaders(requestId),
    date: new Date().toUTCString(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${isHead ? '' : body}`)
  endGently(socket)
}

/** Answers requests that Node would answer by itself, or not at all, and logs connections without a request. */
export function answerOddRequests(server: Server, { inFlight, log, describeProblem }: SocketContext): void {
  // A client that has closed its sending side still gets its answers in full.
  Object.assign(server, { httpAllowHalfOpen: true })
  // The body's reader says 100 Continue once the request is welcome.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  const notProxy = describeProblem(new ProblemError(problems.noProxy))
  server.on('upgrade', (_request, socket: Socket) => takeOver(socket).end(() => endGently(socket)))
  server.on('connect', ({ url, headers }: IncomingMessage, socket: Socket) => {
    if (connectionOf(socket).isLast) return void server.emit('upgrade', undefined, socket)
    const requestId = inFlight.requestId(headers['x-request-id'])
    log.add(socket, { reason: 'tunnel', status: notProxy.status, requestId, url })
    takeOver(socket).end(() => endWithProblem(socket, notProxy, { requestId }))
  })
  server.on('connection', (socket: Socket) => noteSilence(socket, log))
}

/** Does what Node does no more for a socket that it hands over, while earlier answers are under way. */
function takeOver(socket: Socket): Connection {
  const connection = connectionOf(socket)
  socket.on('error', () => socket.destroy())
  socket.on('drain', () => connection.open[0]?.reply.raw.emit('drain'))
  return connection
}

/** Logs a connection that ends without a request and without an answer. */
function noteSilence(socket: Socket, log: ConnectionLog): void {
  // Read remotePort now: Node forgets it once the socket closes.
  void socket.remotePort
  socket.once('close', (failed) => {
    if ((connectionOf(socket) as Connection | undefined)?.latest !== undefined || socket.bytesWritten > 0)
      return
    if (socket.bytesRead === 0) log.addUnused(socket)
    else log.add(socket, { reason: failed ? 'reset' : 'no request' })
  })
}
