// Writes the frequent answers in one go, headers and body together. `reply.send` would look up each header, inspect the
// body and parse the content type.
import type { FastifyReply } from 'fastify'
import { exchangeOf } from './connection/in-flight.ts'

/** Values by lower-case name. */
export type AnswerHeaders = Readonly<Record<string, string>>

/** Headers of every answer, however it is sent. */
export function answerHeaders(requestId: string): AnswerHeaders {
  return { 'x-content-type-options': 'nosniff', 'x-request-id': requestId }
}

/**
 * Sends an answer with the status and the headers that are set on `reply`, and with `headers`. `encoding`: of a text;
 * latin1 for one that has a character for each byte. Without a body there is no `Content-Length`.
 */
export function sendAnswer(
  reply: FastifyReply,
  headers: AnswerHeaders,
  body?: Buffer | string,
  encoding: 'utf8' | 'latin1' = 'utf8',
): void {
  const { raw } = reply
  const exchange = exchangeOf(reply.request)
  const all = { ...answerHeaders(exchange.requestId), ...(reply.getHeaders() as AnswerHeaders), ...headers }
  if (body === undefined) {
    raw.writeHead(raw.statusCode, all).end()
    return
  }
  const bytes = typeof body === 'string' ? Buffer.byteLength(body, encoding) : body.length
  exchange.bodyBytes = bytes
  raw.writeHead(raw.statusCode, { ...all, 'content-length': String(bytes) })
  // ASCII is the same in both encodings; latin1 skips a scan of the text.
  if (typeof body === 'string') raw.end(body, bytes === body.length ? 'latin1' : encoding)
  else raw.end(body)
}
