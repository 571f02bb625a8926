// For every request: an id, response headers, and a graceful shutdown.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'

/** Time after which a shutdown resets connections with unfinished responses. */
const drainMs = 8000
const idleCheckMs = 100

/**
 * The response to the request with this number closes the connection. Node passes no later request to Fastify, which
 * limits the memory used by a client that never waits.
 */
export const maxRequestsPerSocket = 1000

/** Browsers must not guess another media type. */
export const nosniff = ['x-content-type-options', 'nosniff'] as const

/** Returns the path of a request target. For the router, a query also starts at `#`. */
export const pathOf = (url: string) => url.replace(/[?#].*/, '')

/** Matches ids that need no escaping: UUIDs (RFC 9562), ULIDs, base64, and the ids of common proxies. */
const wellFormedId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/**
 * Returns a function that uses a well-formed `X-Request-Id` as the id of a request, or generates an id. `mask`: masks
 * tokens; a token is refused as an id, because ids are logged.
 */
export function makeRequestIds(mask: (text: string) => string) {
  const prefix = randomBytes(5).toString('hex')
  let made = 0
  return ({ headers }: IncomingMessage): string => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && wellFormedId.test(given) && mask(given) === given) return given
    return `${prefix}-${(++made).toString(36)}`
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Makes each response close its connection from now on. */
    drain(): void
  }
}

/** Adds the headers of every response, and closes connections after their last request and at shutdown. */
export const requests = fp(async (app) => {
  let isDraining = false
  const connections = new Map<Socket, { requests: number }>()
  app.server.on('connection', (socket) => {
    connections.set(socket, { requests: 0 })
    socket.once('close', () => connections.delete(socket))
  })

  // Not a hook, because Fastify skips hooks for a path that cannot be decoded.
  app.server.prependListener('request', (request, answer) => {
    const connection = connections.get(request.socket)
    // Node's own limit sends this header but leaves the connection open.
    if (connection && ++connection.requests === maxRequestsPerSocket) answer.setHeader('connection', 'close')
  })

  app.addHook('onRequest', ({ id }, reply, done) => {
    reply.header(...nosniff).header('x-request-id', id)
    done()
  })

  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isDraining) reply.header('connection', 'close')
    done()
  })

  app.decorate('drain', () => (isDraining = true))

  // Node's `close` calls `closeIdleConnections`, which considers a connection with a buffered response idle.
  const closeIdle = app.server.closeIdleConnections.bind(app.server)
  app.server.closeIdleConnections = () => {
    if ([...connections.keys()].every(({ writableLength }) => writableLength === 0)) closeIdle()
  }

  app.addHook('preClose', async () => {
    app.drain()
    const closing = setInterval(() => {
      // Browsers open connections in advance. Node closes idle connections only if they have been used.
      for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
      app.server.closeIdleConnections()
    }, idleCheckMs).unref()
    app.server.once('close', () => clearInterval(closing))
    // Node would close connections normally, and a client could mistake a part of a response for the whole.
    setTimeout(() => {
      for (const socket of connections.keys()) socket.resetAndDestroy()
    }, drainMs).unref()
  })
})
