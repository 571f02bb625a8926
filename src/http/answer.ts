// The answers that there are most of, written in one go: all headers at once, and the body with them. Through
// `reply.send` each header is looked up, each body asked what it is, and each content type taken apart, for 2 µs.
import type { FastifyReply } from 'fastify'
import { exchangeOf } from './in-flight.ts'

/** Names in lower case, with their values. */
export type AnswerHeaders = Readonly<Record<string, string>>

/**
 * Sends an answer with the status that `reply` has, what was gathered in its headers on the way, and these. Text goes out
 * as UTF-8; without a body there is no `Content-Length` either.
 */
export function sendAnswer(reply: FastifyReply, headers: AnswerHeaders, body?: Buffer | string): void {
  const { raw } = reply
  const head: string[] = []
  const gathered = reply.getHeaders()
  for (const name in gathered) head.push(name, gathered[name] as string)
  for (const name in headers) head.push(name, headers[name] as string)
  if (body === undefined) {
    raw.writeHead(raw.statusCode, head).end()
    return
  }
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  head.push('content-length', String(bytes))
  exchangeOf(reply.request).bodyBytes = bytes
  raw.writeHead(raw.statusCode, head)
  // Of ASCII both are the same, and one is faster: it need not be looked through again.
  raw.end(body, bytes === body.length ? 'latin1' : 'utf8')
}
