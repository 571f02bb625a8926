// Request bodies: only JSON in UTF-8, up to a maximum size.
import type { FastifyInstance, preParsingHookHandler } from 'fastify'
import { problems } from '../../schemas/problems.ts'
import { maxBodyBytes, requestMs } from '../limits.ts'
import { exchangeOf } from './connection/in-flight.ts'
import { parseJson } from './json.ts'
import { invalid, ProblemError } from './problem-error.ts'
import { findFaults } from './validation.ts'

/** Replaces the built-in body parsers by one for `application/json`. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: maxBodyBytes } as const
  app.addContentTypeParser<Buffer>('application/json', options, (request, body, done) => {
    const exchange = exchangeOf(request)
    // The time for an answer starts once the request has arrived in full.
    if (exchange.deadlineMs === Number.POSITIVE_INFINITY) exchange.deadlineMs = performance.now() + requestMs
    const { value, faults } = parseJson(body)
    if (faults.length > 0) throw invalid(findFaults(request, value, faults))
    done(null, value)
  })
}

/** Matches a charset parameter other than UTF-8. */
const otherCharset = /;\s*charset\s*=(?!\s*("?)utf-8\1\s*(?:;|$))/i

/** Tells that no content coding is accepted (RFC 9110, sections 12.5.3 and 15.5.16). */
const accepted = { 'accept-encoding': 'identity' }

/** A preParsing hook: refuses an unsupported encoding or charset before the body is read. */
export const requirePlainJson: preParsingHookHandler = (request, reply, payload, done) => {
  const { 'content-encoding': encoding, 'content-type': type, expect } = request.headers
  if (encoding !== undefined) return done(new ProblemError(problems.contentEncoding, { headers: accepted }))
  if (type && otherCharset.test(type)) return done(new ProblemError(problems.charset))
  if (!request.raw.complete) exchangeOf(request).deadlineMs = Number.POSITIVE_INFINITY
  // RFC 9110, section 10.1.1: the head is accepted, and the body is about to be read.
  if (expect !== undefined && request.raw.httpVersionMinor > 0)
    payload.once('resume', () => {
      if (!reply.raw.headersSent) reply.raw.writeContinue()
    })
  done(null, payload)
}
