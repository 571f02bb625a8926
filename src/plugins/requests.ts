// What every request gets: an id, headers of its answer, and a graceful end when the service stops.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'

/** A shutdown resets connections that are still being answered after this time. */
const drainMs = 8000

/**
 * The answer to the last request closes its connection. Node passes no later request to Fastify, which bounds the memory
 * used by a client that never waits.
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

/** True if other codings precede chunked, which Node does not decode (RFC 9112, section 6.1). It refuses the rest. */
export function hasOtherCoding({ 'transfer-encoding': coding }: IncomingHttpHeaders): boolean {
  return coding !== undefined && /,\s*chunked$/i.test(coding)
}

declare module 'fastify' {
  interface FastifyInstance {
    /** From now on each answer closes its connection. */
    drain(): void
  }
  interface FastifyReply {
    /** The number of its request on the connection. */
    number: number
  }
}

export const requests = fp(async (app) => {
  let isDraining = false
  /** The number of requests on each open connection. */
  const connections = new Map<Socket, number>()
  app.decorateReply('number', 0)
  app.server.on('connection', (socket) => {
    connections.set(socket, 0)
    socket.once('close', () => connections.delete(socket))
  })

  // Not in a hook, which Fastify skips for a path that cannot be decoded.
  app.server.prependListener('request', ({ socket, headers }, answer) => {
    const count = (connections.get(socket) ?? 0) + 1
    connections.set(socket, count)
    // Node sends this header, too, but leaves the connection open.
    if (count === maxRequestsPerSocket || hasOtherCoding(headers)) answer.setHeader('connection', 'close')
  })

  app.addHook('onRequest', (request, reply, done) => {
    reply.number = Number(connections.get(request.raw.socket))
    reply.header(...nosniff).header('x-request-id', request.id)
    done()
  })

  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    // Answers to requests behind one that closes the connection would be lost.
    const isLatest = connections.get(raw.socket) === reply.number || !connections.has(raw.socket)
    if (isDraining && isLatest) reply.header('connection', 'close')
    done()
  })

  app.decorate('drain', () => {
    isDraining = true
  })

  app.addHook('preClose', async () => {
    app.drain()
    // Browsers open connections in advance. Node closes idle connections only if they have been used.
    for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
    // Node would end connections normally, and a client could mistake a part of an answer for the whole.
    const reset = () => {
      for (const socket of connections.keys()) socket.resetAndDestroy()
    }
    setTimeout(reset, drainMs).unref()
  })
})
