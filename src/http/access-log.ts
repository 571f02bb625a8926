// One line per request, built by hand: through a logger it would be the most expensive part of a request. Most of a
// line repeats the line before, so its parts are cached, masked and escaped.
import type { LineSink } from '../logging/open-log.ts'
import type { Exchange } from './connection/exchange.ts'
import type { Trace } from './connection/request-ids.ts'

/**
 * Size up to which lines are gathered. Bytes in a buffer cost the garbage collector nothing, unlike strings, and each
 * write wakes a thread, which costs as much as 200 lines.
 */
const chunkBytes = 256 * 1024
/** The longest line: an address of the greatest length that Node accepts in a header, every character escaped. */
const maxLineBytes = 100 * 1024
/** A longer URL is cut. */
const maxUrlLength = 1024

/** `isIso`: RFC 3339 times in UTC instead of milliseconds since 1970; `mask`: masks secrets in what clients sent. */
export type AccessLogOptions = { isIso?: boolean; mask?: (text: string) => string; now?: () => number }

/** Makes a log of access lines in pino's form, without the `Authorization` header. */
export function makeAccessLog(
  sink: LineSink,
  { isIso = false, mask = String, now = Date.now }: AccessLogOptions = {},
) {
  const chunk = Buffer.allocUnsafeSlow(chunkBytes + maxLineBytes)
  let length = 0
  const time = makeTime(isIso)
  const findTarget = cachePieces((exchange) => describeTarget(exchange, mask))
  const describe = (exchange: Exchange) => mask(describeClient(exchange))
  const findClient = cachePieces(describe)

  function format(exchange: Exchange): string {
    const { method, url, status, remoteAddress, owner, problem, requestId, trace, sentBytes } = exchange
    // Only an id that the client gave may hold a secret.
    const id = exchange.hasGivenId ? mask(requestId) : requestId
    const ids = trace ? describeTrace(trace, trace.parent === null ? String : mask) : ''
    const target = findTarget(exchange, method + url, status)
    const durationMs = Math.round(exchange.durationMs * 1000) / 1000
    const client = problem ? describe(exchange) : findClient(exchange, remoteAddress, owner)
    return `${time(now())}${id}${ids}${target}${sentBytes},"durationMs":${durationMs}${client}`
  }

  /** Hands the gathered lines on. */
  function flush(): void {
    // Valid until the next line.
    if (length > 0) sink.write(chunk.subarray(0, length))
    length = 0
  }

  return {
    add(exchange: Exchange): void {
      length += chunk.write(format(exchange), length)
      if (length >= chunkBytes) flush()
    },
    flush,
  }
}

/** Makes the beginning of lines, cached per millisecond. */
function makeTime(isIso: boolean): (nowMs: number) => string {
  let latestMs = Number.NaN
  let latest = ''
  return (nowMs) => {
    if (nowMs === latestMs) return latest
    latestMs = nowMs
    const time = isIso ? `"${new Date(nowMs).toISOString()}"` : nowMs
    latest = `{"level":30,"time":${time},"requestId":"`
    return latest
  }
}

function describeTrace({ traceId, spanId, parent }: Trace, show: (id: string) => string): string {
  const above = parent ? `","parentSpanId":"${show(parent.spanId)}` : ''
  return `","traceId":"${show(traceId)}","spanId":"${show(spanId)}${above}`
}

function describeTarget({ method, url, route, status }: Exchange, show: (url: string) => string): string {
  const shown = show(url)
  // Mask before the cut: half a token would not be recognized.
  const cut = shown.length > maxUrlLength ? `${shown.slice(0, maxUrlLength)}…` : shown
  return `","method":"${method}","url":${JSON.stringify(cut)}${route ? `,"route":"${route}"` : ''},"status":${status},"bytes":`
}

function describeClient({ remoteAddress, owner, problem }: Exchange): string {
  return (
    `,"remoteAddress":${JSON.stringify(String(remoteAddress))}` +
    `${owner ? `,"token":${JSON.stringify(owner)}` : ''}${problem ? `,"problem":"${problem}"` : ''}` +
    `,"pid":${process.pid},"msg":"request"}\n`
  )
}

const maxPieces = 1000
const maxPieceLength = 512

/** Caches parts of lines: one per key, replaced when it is asked for with another `detail`. */
function cachePieces(describe: (exchange: Exchange) => string) {
  const pieces = new Map<string, { detail: unknown; text: string }>()
  return (exchange: Exchange, key: string, detail: unknown): string => {
    const kept = pieces.get(key)
    if (kept !== undefined && kept.detail === detail) return kept.text
    const text = describe(exchange)
    if (text.length > maxPieceLength) return text
    // Clearing it all now and then costs less than tracking which was used last.
    if (pieces.size >= maxPieces) pieces.clear()
    pieces.set(key, { detail, text })
    return text
  }
}
