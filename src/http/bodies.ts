// Request bodies: JSON in UTF-8, up to a size, and no others.
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
    // Its body came late: the time for an answer counts from when a request is there in full.
    if (exchange.deadlineMs === Number.POSITIVE_INFINITY) exchange.deadlineMs = performance.now() + requestMs
    const { value, faults } = parseJson(body)
    if (faults.length > 0) throw invalid(findFaults(request, value, faults))
    done(null, value)
  })
}

/** A charset parameter other than UTF-8, whatever stands before it. */
const otherCharset = /;\s*charset\s*=(?!\s*("?)utf-8\1\s*(?:;|$))/i

/** A preParsing hook: refuses an encoding or a charset that is not read, before the body is. */
export const requirePlainJson: preParsingHookHandler = (request, reply, payload, done) => {
  const { 'content-encoding': encoding, 'content-type': type, expect } = request.headers
  if (encoding !== undefined) return done(new ProblemError(problems.contentEncoding))
  if (type && otherCharset.test(type)) return done(new ProblemError(problems.charset))
  if (!request.raw.complete) exchangeOf(request).deadlineMs = Number.POSITIVE_INFINITY
  // RFC 9110, section 10.1.1: once nothing in the head speaks against the body, and it is about to be read.
  if (expect !== undefined && request.raw.httpVersionMinor > 0)
    payload.once('resume', () => {
      if (!reply.raw.headersSent) reply.raw.writeContinue()
    })
  done(null, payload)
}
