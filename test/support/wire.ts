// Sends HTTP byte for byte, which client libraries would normalize.
import { once } from 'node:events'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'
import { findContractFaults } from './contract.ts'
import { token } from './service.ts'

export type WireAnswer = { status: number; headers: Headers; text: string }

export type Parts = {
  method?: string
  target?: string
  /** Replaces default header lines, or omits those that are undefined. */
  headers?: Record<string, string | undefined>
  body?: string | Buffer
}

/** Composes a request, which is valid by default. */
export function compose({ method, target = '/plants', headers = {}, body }: Parts = {}): Buffer {
  const all: Record<string, string | undefined> = {
    Host: 'plants.test',
    Authorization: `Bearer ${token}`,
    ...(body !== undefined && {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
    }),
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}: ${value}\r\n`,
  )
  const head = `${method ?? (body === undefined ? 'GET' : 'POST')} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body ?? '')])
}

/**
 * Sends bytes and resolves to the responses, once there are `count` of them or the server closes the connection. Rejects if
 * the response to a single request contradicts the contract.
 */
export async function exchange(port: number, bytes: string | Buffer, count = 1): Promise<WireAnswer[]> {
  const answers = await exchangeBytes(port, bytes, count)
  const [, method, target] = /^([A-Z]+) (\/[^ ?]*)/.exec(bytes.toString('latin1')) ?? []
  if (method === undefined || target === undefined || answers.length !== 1) return answers
  const { text, ...answer } = answers[0] as WireAnswer
  const faults = findContractFaults({ method, path: target, ...answer, body: text })
  if (faults.length > 0) throw new Error(faults.join('; '))
  return answers
}

function exchangeBytes(port: number, bytes: string | Buffer, count: number): Promise<WireAnswer[]> {
  const isHead = bytes.toString('latin1').startsWith('HEAD ')
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let received = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      received += chunk
      if (readAnswers(received, isHead).length >= count) socket.destroy()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(readAnswers(received, isHead)))
  })
}

/** Sends one request and resolves to its response. */
export async function send(port: number, bytes: string | Buffer): Promise<WireAnswer> {
  const [answer] = await exchange(port, bytes)
  if (!answer) throw new Error('the server closed the connection without a response')
  return answer
}

/** Reads the complete responses in a text of bytes. A response to HEAD should have no body. */
export function readAnswers(received: string, isHead = false): WireAnswer[] {
  const answers: WireAnswer[] = []
  let rest = received
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) return answers
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers = new Headers(lines.map((line) => line.split(/:\s*(.*)/s, 2) as [string, string]))
    const status = Number(statusLine.split(' ')[1])
    const body = isHead
      ? { text: rest.slice(end + 4), length: rest.length - end - 4 }
      : readBody(rest.slice(end + 4), status, headers)
    if (!body) return answers
    answers.push({ status, headers, text: Buffer.from(body.text, 'latin1').toString() })
    rest = rest.slice(end + 4 + body.length)
  }
}

type Body = { text: string; length: number }

/**
 * Reads the body at the beginning of a text of bytes, and its encoded length (RFC 9112, section 6.3); undefined if it is
 * incomplete. Throws if its length is unknown.
 */
function readBody(text: string, status: number, headers: Headers): Body | undefined {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(text)
  const stated = headers.get('content-length')
  if (stated === null && status >= 200 && status !== 204 && status !== 304)
    throw new Error(`an answer of status ${status} has no length`)
  const length = Number(stated ?? 0)
  return text.length < length ? undefined : { text: text.slice(0, length), length }
}

function readChunks(text: string): Body | undefined {
  let [body, at] = ['', 0]
  for (;;) {
    const [line, size] = /^([0-9a-f]+)\r\n/i.exec(text.slice(at, at + 20)) ?? []
    if (line === undefined || size === undefined) return undefined
    const length = Number.parseInt(size, 16)
    const end = at + line.length + length + 2
    if (text.length < end) return undefined
    body += text.slice(at + line.length, end - 2)
    at = end
    if (length === 0) return { text: body, length: at }
  }
}

/** Makes a server listen on a free port until the test ends. Resolves to its port. */
export async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}
