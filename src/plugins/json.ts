// Parses JSON bodies in UTF-8, and a limit in decimal digits.
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest, preParsingHookHandler, preValidationHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { maxBodyBytes, problems } from '../../schemas/problems.ts'
import { invalid, ProblemError } from '../problem-error.ts'

/** Matches a charset parameter other than UTF-8. */
const otherCharset = /;\s*charset\s*=(?!\s*("?)utf-?8\1\s*(?:;|$))/i
/** Matches an integer in decimal digits. `-0` stays a text, so that the schema refuses it. */
const integer = /^(?:-(?!0+$))?[0-9]+$/

export const json = fp(async (app) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parse)
})

/**
 * The `preParsing` hook of a route with a body: sends 100 Continue if expected (RFC 9110, section 10.1.1). Refuses a body
 * that is too large here, because Fastify would close the connection on a client that still sends, and has not read why.
 */
export const askForBody: preParsingHookHandler = ({ raw }, reply, payload, done) => {
  if (Number(raw.headers['content-length']) > maxBodyBytes)
    return done(new ProblemError(problems.bodyTooLarge))
  if (raw.headers.expect?.toLowerCase() === '100-continue' && raw.httpVersionMinor > 0)
    reply.raw.writeContinue()
  done(null, payload)
}

/** The `preValidation` hook of a route with a `limit`: turns one in decimal digits into a number. */
export const readLimit: preValidationHookHandler = (request, _reply, done) => {
  const query = request.query as Record<string, unknown>
  if (typeof query.limit === 'string' && integer.test(query.limit)) query.limit = Number(query.limit)
  done()
}

/** Parses a body. Throws for one that is encoded, not UTF-8, or not JSON. */
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
