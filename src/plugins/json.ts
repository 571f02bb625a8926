// Parses JSON bodies in UTF-8 and decimal integers in queries, and finds the faults that schemas cannot.
import { isUtf8 } from 'node:buffer'
import type { RequestListener } from 'node:http'
import type { TObject } from '@sinclair/typebox'
import type { FastifyRequest, preParsingHookHandler, preValidationHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { problems } from '../../schemas/problems.ts'
import { findValueFaults, maxFaults } from '../plants/plant-faults.ts'
import { invalid, ProblemError } from '../problem-error.ts'
import { findSchemaFaults } from './errors.ts'

/** Matches a charset parameter other than UTF-8. */
const otherCharset = /;\s*charset\s*=(?!\s*("?)utf-?8\1\s*(?:;|$))/i
const integer = /^-?[0-9]+$/

export const json = fp(async (app) => {
  // Node would ask for a body before its token is verified, and refuse other expectations without a problem.
  const serve: RequestListener = (request, answer) => void app.server.emit('request', request, answer)
  app.server.on('checkContinue', serve).on('checkExpectation', serve)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      const { 'content-encoding': encoding, 'content-type': type = '' } = request.headers
      if (encoding !== undefined)
        throw new ProblemError(problems.contentEncoding, { headers: { 'accept-encoding': 'identity' } })
      if (otherCharset.test(type)) throw new ProblemError(problems.charset)
      return parse(body)
    },
  )
})

/** The `preParsing` hook of a route with a body: sends 100 Continue if expected (RFC 9110, section 10.1.1). */
export const askForBody: preParsingHookHandler = ({ raw }, reply, payload, done) => {
  if (raw.headers.expect !== undefined && raw.httpVersionMinor > 0) reply.raw.writeContinue()
  done(null, payload)
}

/**
 * Makes the `preValidation` hook of a route: turns query integers in decimal digits into numbers, and refuses what its
 * schemas do not, see `findValueFaults`.
 */
export function prepareInput({ querystring, body }: { querystring: TObject; body?: TObject }) {
  const parameters = new Set(Object.keys(querystring.properties))
  const integers = [...parameters].filter((name) => querystring.properties[name]?.type === 'integer')
  const members = new Set(Object.keys(body?.properties ?? {}))

  const prepare: preValidationHookHandler = (request, _reply, done) => {
    const query = request.query as Record<string, unknown>
    for (const name of integers) {
      const text = query[name]
      // `-0` stays a text, so that the schema refuses it.
      if (typeof text === 'string' && integer.test(text) && !Object.is(Number(text), -0))
        query[name] = Number(text)
    }
    const faults = [
      ...findValueFaults(request.body, members, 'body'),
      ...findValueFaults(query, parameters, 'querystring'),
    ]
    if (faults.length === 0) return done()
    // Too many unknown names would take Ajv long.
    if (faults.length < maxFaults) faults.push(...findSchemaFaults(request, faults))
    done(invalid(faults.slice(0, maxFaults)))
  }
  return prepare
}

/** Parses a body. Throws for one that is not UTF-8, or not JSON. */
function parse(body: Buffer): unknown {
  if (!isUtf8(body)) throw malformed('is not UTF-8')
  try {
    return JSON.parse(body.toString())
  } catch {
    throw malformed(body.length === 0 ? 'is empty; expected JSON' : 'is not JSON')
  }
}

function malformed(detail: string): ProblemError {
  return invalid([{ code: 'format', detail, pointer: '' }])
}
