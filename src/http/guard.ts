// What every request meets first, whatever its path: it is observed, and refused when it is no proper request.
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest, HTTPMethods, onRequestHookHandler } from 'fastify'
import { ProblemError } from './problem-error.ts'
import type { Requests } from './in-flight.ts'
import { maxUrlBytes } from './sockets.ts'

const methods: HTTPMethods[] = ['GET', 'HEAD', 'POST']

/** Makes the root hooks and the not-found handler. */
export function guardRequests(requests: Requests) {
  function observe(request: FastifyRequest, reply: FastifyReply): void {
    requests.observe(request, reply.raw)
    reply.header('x-content-type-options', 'nosniff')
  }

  const onRequest: onRequestHookHandler = (request, reply, done) => {
    observe(request, reply)
    const { url, headers } = request.raw
    if ((url as string).length > maxUrlBytes)
      return done(new ProblemError('uri-too-long', 'The URL is too long.'))
    if (!hasProperHost(request.raw))
      return done(new ProblemError('invalid', 'The request must have one Host header.'))
    if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
      return done(
        new ProblemError('expectation-failed', 'The only expectation that is understood is 100-continue.'),
      )
    done()
  }

  /** A request without a route is answered as such, whatever its body is. */
  const requireRoute: onRequestHookHandler = (request, _reply, done) => {
    done(request.is404 ? describeMiss(request) : undefined)
  }

  function notFound(request: FastifyRequest): never {
    throw describeMiss(request)
  }

  return { observe, onRequest, requireRoute, notFound }
}

function describeMiss(request: FastifyRequest): ProblemError {
  const url = decodeURIComponent(request.url.split('?', 1)[0] as string)
  const allowed = methods.filter((method) => request.server.findRoute({ url, method }) !== null)
  // A route that has the method was there, and found nothing itself.
  if (allowed.length === 0 || allowed.includes(request.method as HTTPMethods))
    return new ProblemError('not-found', 'There is nothing at this path.')
  const headers = { allow: allowed.join(', ') }
  return new ProblemError('method-not-allowed', `This path has ${headers.allow} only.`, { headers })
}

/** RFC 9112, section 3.2: one line, which only HTTP/1.0 may leave out. */
function hasProperHost({ rawHeaders, httpVersionMinor }: IncomingMessage): boolean {
  let lines = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') lines++
  }
  return lines === 1 || (lines === 0 && httpVersionMinor === 0)
}
