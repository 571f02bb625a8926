// Request bodies: only JSON in UTF-8, up to a maximum size.
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, preParsingHookHandler } from 'fastify'
import type { Fault } from '../../schemas/problem.ts'
import { problems } from '../../schemas/problems.ts'
import { maxBodyBytes, requestMs } from '../limits.ts'
import { findMemberFaults } from '../validation/json.ts'
import { exchangeOf } from './connection/in-flight.ts'
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

/** Parses a body, and finds the faults of its members. Throws an `invalid` problem for anything but UTF-8 and JSON. */
function parseJson(body: Buffer): { value: unknown; faults: Fault[] } {
  if (!isUtf8(body)) throw notJson('is not UTF-8')
  const text = body.toString()
  const value = parse(text)
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return { value, faults: isObject ? findMemberFaults(text, value) : [] }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notJson(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON')
  }
}

function notJson(detail: string): Error {
  return invalid([{ code: 'format', detail, pointer: '' }])
}
