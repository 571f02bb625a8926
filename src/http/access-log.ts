// One line per request, written by hand: through a logger's machinery it would be the most expensive part of a request.
import type { LineSink } from '../log/open-log.ts'
import type { Access } from './exchange.ts'

export type AccessLog = {
  add(access: Access): void
  /** Hands on what has been gathered. */
  flush(): void
}

/** Lines are gathered up to this size: bytes in a buffer cost the garbage collector nothing, strings do. */
const chunkBytes = 64 * 1024
/** The longest line, with a URL as long as Node takes it and every character of it escaped. */
const maxLineBytes = 100 * 1024

/** `isIso`: whether times are RFC 3339 in UTC, and not milliseconds since 1970. */
export type AccessLogOptions = { isIso?: boolean; now?: () => number }

/** Makes a log of access lines in pino's form. The `Authorization` header is no part of them. */
export function makeAccessLog(
  sink: LineSink,
  { isIso = false, now = Date.now }: AccessLogOptions = {},
): AccessLog {
  const constant = `"pid":${process.pid},"msg":"request"}\n`
  const chunk = Buffer.allocUnsafe(chunkBytes + maxLineBytes)
  let length = 0

  function flush(): void {
    if (length === 0) return
    sink.write(chunk.toString('utf8', 0, length))
    length = 0
  }

  return {
    add(access) {
      const time = isIso ? `"${new Date(now()).toISOString()}"` : now()
      length += chunk.write(`{"level":30,"time":${time},${describe(access)},${constant}`, length)
      if (length >= chunkBytes) flush()
    },
    flush,
  }
}

function describe(access: Access): string {
  const { requestId, trace, method, url, route, status, durationMs, remoteAddress, token, problem } = access
  return (
    `"requestId":"${requestId}"${trace ? `,"traceId":"${trace.traceId}","spanId":"${trace.spanId}"` : ''}` +
    `,"method":"${method}","url":${quote(url)}${route ? `,"route":"${route}"` : ''},"status":${status}` +
    `,"bytes":${access.sentBytes},"durationMs":${durationMs.toFixed(3)}` +
    `,"remoteAddress":${quote(String(remoteAddress))}` +
    `${token ? `,"token":"${token}"` : ''}${problem ? `,"problem":"${problem}"` : ''}`
  )
}

// A remote address is a client's text too, when it comes from a proxy's header.
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

function quote(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}
