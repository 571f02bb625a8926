// For every request: an id, response headers, and a graceful end when the service stops.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'

/** A shutdown resets connections that are still being answered after this time. */
const drainMs = 8000
const idleCheckMs = 100

/**
 * After this many requests, the answer closes the connection. Node passes no later request to Fastify, which bounds the
 * memory used by a client that never waits.
 */
export const maxRequestsPerSocket = 1000

/** Browsers must not guess another media type. */
export const nosniff = ['x-content-type-options', 'nosniff'] as const

/** Ids that need no escaping: UUIDs (RFC 9562), ULIDs, base64, and the ids of common proxies. */
const wellFormedId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/**
 * Makes the function that reads the id of a request from `X-Request-Id` if it is well-formed, and generates one
 * otherwise. `mask`: masks tokens; a token is refused as an id, because ids are logged.
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
    /** From now on each answer closes its connection. */
    drain(): void
  }
  interface FastifyReply {
    /** The number of its request on the connection; 0 if Fastify runs no hooks for it. */
    requestNumber: number
  }
}

export const requests = fp(async (app) => {
  let isDraining = false
  /** `requests`: how many have arrived; `isEnding`: the last answer has been given. */
  const connections = new Map<Socket, { requests: number; isEnding: boolean }>()
  app.decorateReply('requestNumber', 0)
  app.server.on('connection', (socket) => {
    connections.set(socket, { requests: 0, isEnding: false })
    socket.once('close', () => connections.delete(socket))
  })

  // Not in a hook, which Fastify skips for a path that cannot be decoded.
  app.server.prependListener('request', ({ socket }, answer) => {
    const connection = connections.get(socket)
    // With its own limit Node also sends this header, but leaves the connection open.
    if (connection && ++connection.requests === maxRequestsPerSocket) answer.setHeader('connection', 'close')
  })

  app.addHook('onRequest', ({ id, raw }, reply, done) => {
    const connection = connections.get(raw.socket)
    // A request behind the last answer could not be answered, so it is not processed (RFC 9112, section 9.6).
    if (connection?.isEnding) return
    reply.requestNumber = connection?.requests ?? 0
    reply.header(...nosniff).header('x-request-id', id)
    done()
  })

  // The last answer closes its connection; an earlier one must not, because those behind it would be lost.
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (!isDraining) return done()
    const connection = connections.get(raw.socket)
    if (!connection || [0, connection.requests].includes(reply.requestNumber))
      reply.header('connection', 'close')
    // Fastify has set it, if the app is closing or a body could not be parsed.
    else reply.removeHeader('connection')
    if (connection?.requests === reply.requestNumber) connection.isEnding = true
    done()
  })

  app.decorate('drain', () => (isDraining = true))

  app.addHook('preClose', async () => {
    app.drain()
    const closing = setInterval(() => {
      const sockets = [...connections.keys()]
      // Browsers open connections in advance. Node closes idle connections only if they have been used.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      // Only when all answers are sent: Node counts a connection as idle while its answer is still buffered.
      if (sockets.every(({ writableLength }) => writableLength === 0)) app.server.closeIdleConnections()
    }, idleCheckMs).unref()
    app.server.once('close', () => clearInterval(closing))
    // Node would end connections normally, and a client could mistake a part of an answer for the whole.
    setTimeout(() => {
      for (const socket of connections.keys()) socket.resetAndDestroy()
    }, drainMs).unref()
  })
})
