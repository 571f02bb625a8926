// The answers that there are most of, written in one go: all headers at once, and the body with them. Through
// `reply.send` each header is looked up, each body asked what it is, and each content type taken apart.
import type { FastifyReply } from 'fastify'
import type { Exchange } from './connection/exchange.ts'
import { exchangeOf } from './connection/in-flight.ts'

/** Names in lower case, with their values. */
export type AnswerHeaders = Readonly<Record<string, string>>

/** Headers of every answer, however it is sent. */
export function answerHeaders({ requestId }: Pick<Exchange, 'requestId'>): AnswerHeaders {
  return { 'x-content-type-options': 'nosniff', 'x-request-id': requestId }
}

/** For an answer that is sent in another way than by `sendAnswer`. */
export function beginAnswer(reply: FastifyReply, exchange: Exchange): void {
  reply.headers(answerHeaders(exchange))
}

/**
 * Sends an answer with the status that `reply` has, what was gathered in its headers on the way, and these. Text goes out
 * as UTF-8; without a body there is no `Content-Length` either.
 */
export function sendAnswer(reply: FastifyReply, headers: AnswerHeaders, body?: Buffer | string): void {
  const { raw } = reply
  const exchange = exchangeOf(reply.request)
  const own = answerHeaders(exchange)
  const begun = exchange.hasExtraHeaders ? { ...own, ...(reply.getHeaders() as AnswerHeaders) } : own
  if (body === undefined) {
    raw.writeHead(raw.statusCode, { ...begun, ...headers }).end()
    return
  }
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  exchange.bodyBytes = bytes
  raw.writeHead(raw.statusCode, { ...begun, ...headers, 'content-length': String(bytes) })
  // ASCII is the same in both, and need not be looked through again.
  if (typeof body === 'string') raw.end(body, bytes === body.length ? 'latin1' : 'utf8')
  else raw.end(body)
}
