// Compresses what is served without a token. No answer changes, so each is read and compressed once and kept: anybody could
// fill the memory with a stream of compression for each request.
import { ReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import fp from 'fastify-plugin'
import { compress as compressors, negotiate } from '../../plants/codings.ts'

const compressible = /^text\/|json|javascript|yaml|svg/

class Answers extends Map<unknown, Promise<Buffer>> {}

/** For scopes with few answers. */
export const compress = fp(async (app) => {
  /** By coding, and by the path of a file, or by what was sent. */
  const kept = { zstd: new Answers(), br: new Answers(), gzip: new Answers(), identity: new Answers() }

  app.addHook('onSend', async ({ headers }, reply, payload) => {
    if (reply.problem !== undefined) return payload
    const [vary, type] = [reply.getHeader('vary'), String(reply.getHeader('content-type'))]
    // CORS may have set another Vary.
    reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`)
    const isFile = payload instanceof ReadStream
    if (!isFile && typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
    const [coding = 'identity'] = compressible.test(type) ? negotiate(headers['accept-encoding']) : []
    const make = async () => {
      const bytes = isFile ? await buffer(payload) : Buffer.from(payload)
      return coding === 'identity' ? bytes : compressors[coding](bytes)
    }
    const key = isFile ? payload.path : payload
    const made = kept[coding].get(key) ?? make()
    kept[coding].set(key, made)
    made.catch(() => kept[coding].delete(key))
    const bytes = await made
    if (isFile) payload.destroy()
    if (coding !== 'identity') reply.header('content-encoding', coding)
    reply.header('content-length', bytes.length)
    return bytes
  })
})
