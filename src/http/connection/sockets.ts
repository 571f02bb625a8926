// Answers below the router: bytes that are no valid request still get problem details.

import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { problems } from '../../../schemas/problems.ts'
import { maxUrlBytes } from '../../limits.ts'
import type { ConnectionLog } from '../../logging/connection-log.ts'
import { answerHeaders } from '../answer.ts'
import { ProblemError } from '../problem-error.ts'
import type { DescribeProblem } from '../problems.ts'
import { type Connection, connectionOf } from './connection.ts'
import { endGently } from './end-gently.ts'
import type { Exchange } from './exchange.ts'
import type { InFlight } from './in-flight.ts'

/** An ESM import of node:http would read each of its exports, and so load all of undici: 60 ms and 8 MiB in each thread. */
const { STATUS_CODES } = process.getBuiltinModule('node:http')

type ClientError = Error & { code?: string; rawPacket?: unknown; bytesParsed?: number }

/** The parts that answers below the router need. */
export type SocketContext = {
  inFlight: InFlight
  log: ConnectionLog
  describeProblem: DescribeProblem
  corsHeaders: (head: string) => Record<string, string>
}

/** Makes the answer to what the HTTP parser could not read, or did not get in time. */
export function makeClientErrorHandler({ inFlight, log, describeProblem, corsHeaders }: SocketContext) {
  const broken = new WeakSet<Socket>()
  return function handleClientError(error: ClientError, socket: Socket): void {
    if (error.code === 'ECONNRESET') return void socket.destroy()
    const connection = connectionOf(socket)
    // We stopped the parser ourselves.
    if (error.code === 'HPE_PAUSED') return void connection.hold(restOf(error))
    // RFC 9112, section 9.6: what follows a request that says so is not read, and its answer is still to come.
    if (error.code === 'HPE_CLOSED_CONNECTION') return void connection.end(() => {})
    if (broken.has(socket)) return
    broken.add(socket)
    const latest = connection.latest
    const problem = toProblem(error)
    if (latest && !latest.raw.complete) return void endBody(latest, problem)
    const requestId = inFlight.requestId()
    const described = describeProblem(problem)
    Object.assign(described.headers, corsHeaders(String(error.rawPacket ?? '')))
    log.add(socket, { reason: String(error.code), status: described.status, requestId })
    // The valid requests before it are answered first.
    connection.end(() => endWithProblem(socket, described, { requestId, isHead: isHead(error) }))
  }
}

/** The part of a packet that the parser did not read. */
function restOf({ rawPacket, bytesParsed }: ClientError): Buffer {
  return (rawPacket as Buffer).subarray(bytesParsed)
}

/** True when the request is a HEAD, whose answer has no body, as far as the packet tells in which its fault came out. */
function isHead({ rawPacket, bytesParsed }: ClientError): boolean {
  const parsed = (rawPacket as Buffer | undefined)?.toString('latin1', 0, bytesParsed) ?? ''
  // Behind the end of a head it is another request that is at fault.
  return parsed.startsWith('HEAD ') && !parsed.includes('\r\n\r\n')
}

/** The rest of a body cannot be read: answers with `problem`, unless the request has its answer already. */
function endBody(exchange: Exchange, problem: ProblemError): void {
  const { reply, raw } = exchange
  // An answer that is still on its way is not cut off: the client could mistake a partial answer for the whole.
  if (exchange.index < 0) return void raw.socket.destroySoon()
  connectionOf(raw.socket).endAfter(exchange)
  if (!reply.raw.headersSent) reply.send(problem)
}

function toProblem({ code, rawPacket }: ClientError): ProblemError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ProblemError(problems.late)
  if (code !== 'HPE_HEADER_OVERFLOW') return new ProblemError(problems.notHttp)
  const isTarget = endsInTarget((rawPacket as Buffer).toString('latin1'))
  return new ProblemError(isTarget ? problems.urlTooLong : problems.headTooLarge)
}

/** True when a head was too large for its target alone, as far as the packet tells in which that came out. */
function endsInTarget(packet: string): boolean {
  const [, target] = /^[A-Z-]+ (\S*)/.exec(packet) ?? []
  // A packet without its beginning is the middle of a target when it holds nothing that is around one.
  return target === undefined ? !/\s/.test(packet) : target.length > maxUrlBytes
}

/** Answers below HTTP, and ends the connection. `isHead`: the answer to a HEAD has no body. */
export function endWithProblem(
  socket: Socket,
  { status, problem, headers }: ReturnType<DescribeProblem>,
  { requestId, isHead = false }: { requestId: string; isHead?: boolean },
): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify(problem)
  const all = {
    ...headers,
    ...answerHeaders({ requestId }),
    date: new Date().toUTCString(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${isHead ? '' : body}`)
  endGently(socket)
}

/** Takes over the requests that Node would answer by itself, or not at all, and sees connections that bring none. */
export function answerOddRequests(server: Server, { inFlight, log, describeProblem }: SocketContext): void {
  // A client that has closed its side still gets its answers, and all of a list.
  Object.assign(server, { httpAllowHalfOpen: true })
  // The body's reader says 100 Continue once the request is welcome.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  const notProxy = describeProblem(new ProblemError(problems.noProxy))
  server.on('connect', ({ url, headers }: IncomingMessage, socket: Socket) => {
    const requestId = inFlight.requestId(headers['x-request-id'])
    log.add(socket, { reason: 'tunnel', status: notProxy.status, requestId, url })
    refuseTunnel(socket, () => endWithProblem(socket, notProxy, { requestId }))
  })
  server.on('connection', (socket: Socket) => noteSilence(socket, log))
}

/** A connection that ends before it brought a request, or anything that was answered, has a line when it ends. */
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

/** Node has detached the socket: its errors, and the flow of answers that are under way, are handled here. */
function refuseTunnel(socket: Socket, refuse: () => void): void {
  type Answering = Socket & { _httpMessage?: { emit(event: 'drain'): void } | null }
  socket.on('error', () => socket.destroy())
  socket.on('drain', () => (socket as Answering)._httpMessage?.emit('drain'))
  connectionOf(socket).end(refuse)
}
