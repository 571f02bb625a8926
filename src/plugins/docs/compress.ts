// Compresses responses that need no token. They never change, so each is read and compressed once and cached: otherwise
// anybody could exhaust the memory with compression streams.
import { ReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import fp from 'fastify-plugin'
import { compressors, negotiate } from '../../plants/codings.ts'

const compressible = /^text\/|json|javascript|yaml|svg/

/** Register it only in a context with few distinct responses. */
export const compress = fp(async (app) => {
  /** Cached bytes, by coding and the path of a file or the uncompressed string. */
  const cache = new Map<string, Promise<Buffer>>()

  app.addHook('onSend', async ({ headers }, reply, payload) => {
    if (reply.problem !== undefined) return payload
    const vary = reply.getHeader('vary')
    const type = String(reply.getHeader('content-type'))
    // The CORS plugin may have set Vary.
    reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`)
    const isFile = payload instanceof ReadStream
    if (!isFile && typeof payload !== 'string') {
      // @fastify/static responds to HEAD with an empty stream, and the length of the plain file.
      reply.removeHeader('content-length')
      return payload
    }
    const [coding = 'identity'] = compressible.test(type) ? negotiate(headers['accept-encoding']) : []
    const read = async () => (isFile ? buffer(payload) : Buffer.from(payload))
    const make = async () => (coding === 'identity' ? read() : compressors[coding](await read()))
    const key = `${coding} ${isFile ? payload.path : payload}`
    const made = cache.get(key) ?? make()
    cache.set(key, made)
    made.catch(() => cache.delete(key))
    // The file has been opened, but is not read if its bytes are cached.
    if (isFile) payload.on('error', () => {})
    const bytes = await made.finally(() => isFile && payload.destroy())
    if (coding !== 'identity') reply.header('content-encoding', coding)
    reply.header('content-length', bytes.length)
    return bytes
  })
})
