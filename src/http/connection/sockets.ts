// Answers below the router: what is no request at all still gets problem details.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { maxUrlBytes } from '../limits.ts'
import type { ConnectionLog } from '../log/connection-log.ts'
import { endGently } from './connections.ts'
import type { Exchange } from './exchange.ts'
import type { InFlight } from './in-flight.ts'
import { ProblemError } from './problem-error.ts'
import type { DescribeProblem } from './problems.ts'
import { statusTexts } from './status-texts.ts'

type ClientError = Error & { code?: string; rawPacket?: unknown; bytesParsed?: number }

/** What happens below the router needs these. */
export type Below = { inFlight: InFlight; log: ConnectionLog; describeProblem: DescribeProblem }

/** Makes the answer to what the HTTP parser could not read, or did not get in time. */
export function makeClientErrorHandler({ inFlight, log, describeProblem }: Below) {
  const broken = new WeakSet<Socket>()
  return function handleClientError(error: ClientError, socket: Socket): void {
    if (error.code === 'ECONNRESET') return void socket.destroy()
    if (broken.has(socket)) return
    broken.add(socket)
    const connection = inFlight.connection(socket)
    const latest = connection?.latest
    const problem = toProblem(error)
    if (latest && !latest.raw.complete) return void endBody(latest, problem)
    const requestId = inFlight.requestId()
    const described = describeProblem(problem)
    log.add(socket, { reason: String(error.code), status: described.status, requestId })
    const end = () => endWithProblem(socket, described, { requestId, isHead: isHead(error) })
    // What cannot be read came after proper requests: they have their answers first.
    if (connection) connection.end(end)
    else end()
  }
}

/** Whether the request is a HEAD, whose answer has no body, as far as the packet tells in which its fault came out. */
function isHead({ rawPacket, bytesParsed }: ClientError): boolean {
  const parsed = (rawPacket as Buffer | undefined)?.toString('latin1', 0, bytesParsed) ?? ''
  // Behind the end of a head it is another request that is at fault.
  return parsed.startsWith('HEAD ') && !parsed.includes('\r\n\r\n')
}

/** The rest of a body cannot be read. A request has one answer: this is it, unless it has been given. */
function endBody(exchange: Exchange, problem: ProblemError): void {
  const { reply, raw } = exchange
  // An answer that is still on its way is not cut off: a client could take the part for the whole.
  if (exchange.place < 0) return void raw.socket.destroySoon()
  exchange.via.endAfter(exchange)
  if (!reply.raw.headersSent) reply.send(problem)
}

function toProblem({ code, rawPacket }: ClientError): ProblemError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ProblemError('timeout', 'The request did not arrive in time.')
  if (code !== 'HPE_HEADER_OVERFLOW') return new ProblemError('invalid', 'This is not an HTTP/1.1 request.')
  return endsInTarget((rawPacket as Buffer).toString('latin1'))
    ? new ProblemError('uri-too-long', 'The URL is too long.')
    : new ProblemError('headers-too-large', 'The header section is too large.')
}

/** Whether a head was too large for its target alone, as far as the packet tells in which that came out. */
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
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
    date: new Date().toUTCString(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${statusTexts[status]}\r\n${lines.join('')}\r\n${isHead ? '' : body}`)
  endGently(socket)
}

/** Takes over the requests that Node would answer by itself, or not at all, and sees connections that bring none. */
export function answerOddRequests(server: Server, { inFlight, log, describeProblem }: Below): void {
  // A client that has said all it has to say still has its answers coming, and all of a list.
  Object.assign(server, { httpAllowHalfOpen: true })
  // The body's reader says 100 Continue once the request is welcome.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  const notProxy = describeProblem(new ProblemError('not-found', 'This is not a proxy.'))
  server.on('connect', ({ url, headers }: IncomingMessage, socket: Socket) => {
    const requestId = inFlight.requestId(headers['x-request-id'])
    log.add(socket, { reason: 'tunnel', status: notProxy.status, requestId, url })
    refuseTunnel(socket, inFlight, () => endWithProblem(socket, notProxy, { requestId }))
  })
  server.on('connection', (socket: Socket) => noteSilence(socket, inFlight, log))
}

/** A connection that ends before it brought a request, or anything that was answered, has a line when it ends. */
function noteSilence(socket: Socket, inFlight: InFlight, log: ConnectionLog): void {
  // Later on a socket knows whom it was connected with only if it was asked before.
  void socket.remotePort
  socket.once('close', (failed) => {
    if (inFlight.connection(socket) !== undefined || socket.bytesWritten > 0) return
    if (socket.bytesRead === 0) log.addUnused(socket)
    else log.add(socket, { reason: failed ? 'reset' : 'no request' })
  })
}

/** Node has let go of the socket: from here on its faults, and the flow of answers that are under way, are ours. */
function refuseTunnel(socket: Socket, inFlight: InFlight, refuse: () => void): void {
  type Answering = Socket & { _httpMessage?: { emit(event: 'drain'): void } | null }
  socket.on('error', () => socket.destroy())
  socket.on('drain', () => (socket as Answering)._httpMessage?.emit('drain'))
  socket.resume()
  const connection = inFlight.connection(socket)
  if (connection) connection.end(refuse)
  else refuse()
}
