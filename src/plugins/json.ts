// Parses JSON bodies in UTF-8.
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { problems } from '../../schemas/problems.ts'
import { invalid, ProblemError } from '../problem-error.ts'

/** Matches a charset parameter other than UTF-8. */
const otherCharset = /;\s*charset\s*=(?!\s*("?)utf-?8\1\s*(?:;|$))/i

/** Replaces Fastify's parsers. */
export const json = fp(async (app) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parse)
})

/** Parses a body. Throws if it has a content coding, is not UTF-8, or is not JSON. */
async function parse({ headers }: FastifyRequest, body: Buffer): Promise<unknown> {
  const { 'content-encoding': encoding, 'content-type': type = '' } = headers
  if (encoding !== undefined)
    throw new ProblemError(problems.contentEncoding, { headers: { 'accept-encoding': 'identity' } })
  if (otherCharset.test(type)) throw new ProblemError(problems.charset)
  if (!isUtf8(body)) throw invalid([{ code: 'format', detail: 'is not UTF-8', pointer: '' }])
  try {
    return JSON.parse(body.toString())
  } catch {
    const detail = body.length === 0 ? 'is empty; expected JSON' : 'is not JSON'
    throw invalid([{ code: 'format', detail, pointer: '' }])
  }
}
