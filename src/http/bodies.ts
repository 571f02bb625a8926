// Which bodies are read at all: JSON in UTF-8, up to a size, and no others.
import type { FastifyInstance, preParsingHookHandler } from 'fastify'
import { ProblemError } from './problem-error.ts'
import { parseJson } from './json.ts'

const maxBodyBytes = 16 * 1024

/** Replaces the built-in body parsers by one for `application/json`. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: maxBodyBytes } as const
  app.addContentTypeParser<Buffer>('application/json', options, (_request, body, done) =>
    done(null, parseJson(body)),
  )
}

/** A preParsing hook: refuses an encoding or a charset that is not read, before the body is. */
export const requirePlainJson: preParsingHookHandler = (request, reply, payload, done) => {
  const { 'content-encoding': encoding, 'content-type': type, expect } = request.headers
  const charset = type && /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1]
  if (encoding !== undefined) return done(unsupported('A content encoding is not understood here.'))
  if (charset && charset.toLowerCase() !== 'utf-8') return done(unsupported('The charset must be UTF-8.'))
  // Now that the request is welcome: `Expect: 100-continue` (RFC 9110, section 10.1.1).
  if (expect !== undefined) reply.raw.writeContinue()
  done(null, payload)
}

function unsupported(detail: string): ProblemError {
  return new ProblemError('unsupported-media-type', detail)
}
