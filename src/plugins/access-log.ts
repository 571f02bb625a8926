// The access log: one line per request. Formatted without pino, which would take a quarter of the time of a request.
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { pathOf } from './requests.ts'

/**
 * Lines are buffered up to this size, because each write wakes a thread. They are stored as bytes, which cost the
 * garbage collector nothing.
 */
const chunkBytes = 256 * 1024
/** Maximum time that a line is buffered. */
const flushMs = 250
/** Maximum size of a line: its address may be a header of maximum length, with every character escaped. */
const maxLineBytes = 100 * 1024
const maxUrlLength = 1024
/** Maximum number of cached targets. Clearing them all costs less than tracking their use. */
const maxTargets = 1000

/** `write`: writes lines, and copies them; absent: no access log. `mask`: masks tokens. `count`: for metrics. */
export type AccessLogOptions = {
  write?: ((lines: Uint8Array) => void) | undefined
  mask: (text: string) => string
  count?: Count | undefined
}
/** Counts a request that has ended. */
export type Count = (request: FastifyRequest, reply: FastifyReply, end: Answered) => void
type Answered = { status: number; durationMs: number }

declare module 'fastify' {
  interface FastifyInstance {
    /** Logs and counts a request when it ends. */
    logWhenEnded?: (request: FastifyRequest, reply: FastifyReply) => void
  }
}

type End = Answered & { bytes: number; address: string }

/** Logs each request when its response has ended, or the client has disconnected. */
export const accessLog = fp<AccessLogOptions>(async (app, { write, mask, count }) => {
  /** Cached parts of lines, by method and URL. */
  const targets = new Map<string, string>()
  const chunk = Buffer.allocUnsafeSlow(chunkBytes + maxLineBytes)
  let length = 0

  app.addHook('onRequest', (request, reply, done) => {
    logWhenEnded(request, reply)
    done()
  })
  // For requests that run no hooks.
  app.decorate('logWhenEnded', logWhenEnded)

  function logWhenEnded(request: FastifyRequest, reply: FastifyReply): void {
    const startMs = performance.now()
    // Read now: a closed connection has no address. With TRUST_PROXY, a proxy may send any string as an address.
    const address = request.ips === undefined ? addressOf(request) : mask(addressOf(request))
    let streamedBytes = 0
    reply.raw.on('pipe', (body) => body.on('data', ({ length }) => (streamedBytes += length)))
    // Unlike `finish`, `close` is also emitted if the client disconnects before the end of the response.
    reply.raw.on('close', () => {
      const durationMs = performance.now() - startMs
      const { writableFinished, statusCode } = reply.raw
      // 499: the client disconnected first. A list that failed midway has the status 500, and no `problem`.
      const status = writableFinished || (statusCode >= 500 && !reply.problem) ? statusCode : 499
      count?.(request, reply, { status, durationMs })
      if (!write) return
      const sent = reply.getHeader('content-length') ?? streamedBytes
      const bytes = request.raw.method === 'HEAD' ? 0 : Number(sent)
      length += chunk.write(format(request, reply, { status, bytes, durationMs, address }), length)
      if (length >= chunkBytes) flush()
    })
  }

  const flushing = setInterval(flush, flushMs).unref()
  app.addHook('onClose', async () => {
    clearInterval(flushing)
    await lastClose().then(flush)
  })

  function format(request: FastifyRequest, { problem }: FastifyReply, end: End): string {
    const { grant } = request
    const { status, bytes, durationMs, address } = end
    return (
      `{"level":30,"time":${Date.now()},"requestId":"${request.id}"${describeTarget(request)},"status":${status}` +
      `,"bytes":${bytes},"durationMs":${Math.round(durationMs * 1000) / 1000}` +
      `,"remoteAddress":${JSON.stringify(address)}` +
      `${grant ? `,"token":${JSON.stringify(grant.id)}` : ''}${problem ? `,"problem":"${problem}"` : ''}` +
      `,"pid":${process.pid},"msg":"request"}\n`
    )
  }

  function describeTarget(request: FastifyRequest): string {
    const { method, url } = request
    const known = targets.get(method + url)
    if (known) return known
    const route = request.routeOptions.url
    const text = `,"method":"${method}","url":${JSON.stringify(mask(withoutValues(url)).slice(0, maxUrlLength))}`
    const target = route === undefined ? text : `${text},"route":"${route}"`
    if (targets.size >= maxTargets) targets.clear()
    if (url.length <= maxUrlLength) targets.set(method + url, target)
    return target
  }

  function flush(): void {
    if (length > 0) write?.(chunk.subarray(0, length))
    length = 0
  }
})

/** Reset connections emit `close` up to two turns of the event loop after the server does. */
async function lastClose(): Promise<void> {
  for (let turns = 0; turns < 2; turns++) await new Promise(setImmediate)
}

/** Removes the values from the query of a URL. Keeps the = at the end of a name without a value: it may be a token. */
function withoutValues(url: string): string {
  const path = pathOf(url)
  return path + url.slice(path.length).replaceAll(/(?<!=)=+[^&=][^&]*/g, '=')
}

/** Returns the address of a client. A dual-stack socket shows an IPv4 address with the prefix `::ffff:`. */
const addressOf = ({ ip }: FastifyRequest) => (ip?.startsWith('::ffff:') ? ip.slice(7) : String(ip))
