// Answers below the router: what is no request at all still gets problem details.
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ProblemError } from './problem-error.ts'
import { describeProblem } from './problems.ts'
import type { Requests } from './in-flight.ts'

/** A longer request line is a URL that is too long; a shorter one was followed by too many headers. */
export const maxUrlBytes = 8 * 1024

type ClientError = Error & { code?: string; rawPacket?: unknown }

/** Makes the answer to what the HTTP parser could not read, or did not get in time. */
export function makeClientErrorHandler(requests: Requests) {
  const broken = new WeakSet<Socket>()
  return function handleClientError(error: ClientError, socket: Socket): void {
    if (error.code === 'ECONNRESET') return void socket.destroy()
    // Its answer is out, and what did not come in time is the rest of a body that nobody waits for.
    if (requests.answeredEarly(socket) && error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      return void socket.destroy()
    if (broken.has(socket)) return
    broken.add(socket)
    // What cannot be read came after a proper request: that one has its own answer, and has it first.
    const pending = requests.pending(socket)
    if (pending) pending.on('close', () => endWithProblem(socket, toProblem(error)))
    else endWithProblem(socket, toProblem(error))
  }
}

function toProblem({ code, rawPacket }: ClientError): ProblemError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ProblemError('timeout', 'The request did not arrive in time.')
  if (code !== 'HPE_HEADER_OVERFLOW') return new ProblemError('invalid', 'This is not an HTTP/1.1 request.')
  const line = (rawPacket as Buffer).indexOf('\r\n')
  return line === -1 || line > maxUrlBytes
    ? new ProblemError('uri-too-long', 'The URL is too long.')
    : new ProblemError('headers-too-large', 'The header section is too large.')
}

function endWithProblem(socket: Duplex, error: ProblemError): void {
  if (!socket.writable) return void socket.destroy()
  const { status, problem, headers } = describeProblem(error)
  const body = JSON.stringify(problem)
  const all = {
    ...headers,
    'x-content-type-options': 'nosniff',
    date: new Date().toUTCString(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  )
}

/** Takes over the requests that Node would answer by itself, or not at all. */
export function answerOddRequests(server: Server): void {
  // The body's reader says 100 Continue once the token is checked.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    endWithProblem(socket, new ProblemError('not-found', 'This is not a proxy.'))
  })
}
