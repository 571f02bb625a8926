// Compresses what is served without a token. No answer changes, so each is read and compressed once and kept: otherwise
// anybody could fill the memory with a stream of compression for each request.
import { ReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import fp from 'fastify-plugin'
import { compress as compressors, negotiate } from '../../plants/codings.ts'

const compressible = /^text\/|json|javascript|yaml|svg/

const makeMap = () => new Map<unknown, Promise<Buffer>>()

/** For scopes with few answers. */
export const compress = fp(async (app) => {
  /** By coding, and by the path of a file or by the text that was sent. */
  const kept = { zstd: makeMap(), br: makeMap(), gzip: makeMap(), identity: makeMap() }

  app.addHook('onSend', async ({ headers }, reply, payload) => {
    if (reply.problem !== undefined) return payload
    const [vary, type] = [reply.getHeader('vary'), String(reply.getHeader('content-type'))]
    // CORS may have set another Vary.
    reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`)
    const isFile = payload instanceof ReadStream
    if (!isFile && typeof payload !== 'string') {
      // @fastify/static answers HEAD with an empty stream, and with the length of the plain file.
      reply.removeHeader('content-length')
      return payload
    }
    const [coding = 'identity'] = compressible.test(type) ? negotiate(headers['accept-encoding']) : []
    const read = async () => (isFile ? buffer(payload) : Buffer.from(payload))
    const make = async () => (coding === 'identity' ? read() : compressors[coding](await read()))
    const key = isFile ? payload.path : payload
    const made = kept[coding].get(key) ?? make()
    kept[coding].set(key, made)
    made.catch(() => kept[coding].delete(key))
    // The file was opened, but is not read if it is kept.
    if (isFile) payload.on('error', () => {})
    const bytes = await made.finally(() => isFile && payload.destroy())
    if (coding !== 'identity') reply.header('content-encoding', coding)
    reply.header('content-length', bytes.length)
    return bytes
  })
})
