// One line per request, built by hand: through a logger it would be the most expensive part of a request. Most of a
// line repeats the line before, so it is assembled from cached bytes.
import { LineBytes } from '../logging/line-bytes.ts'
import type { LineSink } from '../logging/open-log.ts'
import type { Access } from './connection/exchange.ts'
import type { Trace } from './connection/request-ids.ts'

export type AccessLog = {
  add(access: Access): void
  /** Hands the gathered lines on. */
  flush(): void
}

/**
 * Size up to which lines are gathered. Bytes in a buffer cost the garbage collector nothing, unlike strings, and each
 * write wakes a thread, which costs as much as 200 lines.
 */
const chunkBytes = 256 * 1024
/** The longest line: a URL of the greatest length that Node accepts, every character escaped. */
const maxLineBytes = 100 * 1024

/** `isIso`: RFC 3339 times in UTC instead of milliseconds since 1970; `mask`: masks secrets in what clients sent. */
export type AccessLogOptions = { isIso?: boolean; mask?: (text: string) => string; now?: () => number }

/** Makes a log of access lines in pino's form, without the `Authorization` header. */
export function makeAccessLog(
  sink: LineSink,
  { isIso = false, mask = String, now = Date.now }: AccessLogOptions = {},
): AccessLog {
  const lines = new LineBytes(chunkBytes + maxLineBytes)
  const time = makeTime(isIso)
  /** Pieces by method: GET and POST share a path, and would replace each other's entries. */
  const targets = new Map<string, Pieces>()
  const describe = (access: Access) => Buffer.from(mask(describeClient(access)))
  const clients = new Pieces(describe)

  function piecesOf(method: string): Pieces {
    const made = new Pieces((access) => Buffer.from(mask(describeTarget(access))))
    targets.set(method, made)
    return made
  }

  function flush(): void {
    if (lines.length > 0) sink.write(lines.take())
  }

  return {
    add(access) {
      const { method, url, status, remoteAddress, token, problem, requestId, trace } = access
      lines.put(time(now()))
      // Only an id that the client gave may hold a secret.
      lines.putAscii(access.hasGivenId ? mask(requestId) : requestId)
      if (trace) putTrace(lines, trace, trace.parent === null ? String : mask)
      lines.put((targets.get(method) ?? piecesOf(method)).get(access, url, status))
      lines.putNumber(access.sentBytes)
      putDuration(lines, access.durationMs)
      lines.put(problem ? describe(access) : clients.get(access, String(remoteAddress), token))
      if (lines.length >= chunkBytes) flush()
    },
    flush,
  }
}

/** Makes the beginning of a line, cached per millisecond. */
function makeTime(isIso: boolean): (nowMs: number) => Uint8Array {
  let latestMs = Number.NaN
  let latest = Buffer.alloc(0)
  return (nowMs) => {
    if (nowMs === latestMs) return latest
    latestMs = nowMs
    const time = isIso ? `"${new Date(nowMs).toISOString()}"` : nowMs
    latest = Buffer.from(`{"level":30,"time":${time},"requestId":"`)
    return latest
  }
}

/** Writes milliseconds with three decimals. */
function putDuration(lines: LineBytes, durationMs: number): void {
  const us = Math.round(durationMs * 1000)
  const ms = Math.floor(us / 1000)
  lines.putAscii(',"durationMs":')
  lines.putNumber(ms)
  lines.putAscii('.')
  lines.putNumber(us - ms * 1000, 3)
}

/** Writes the ids one by one: concatenating them first takes half as long again. */
function putTrace(lines: LineBytes, { traceId, spanId, parent }: Trace, show: (id: string) => string): void {
  lines.putAscii('","traceId":"')
  lines.putAscii(show(traceId))
  lines.putAscii('","spanId":"')
  lines.putAscii(show(spanId))
  if (!parent) return
  lines.putAscii('","parentSpanId":"')
  lines.putAscii(show(parent.spanId))
}

function describeTarget({ method, url, route, status }: Access): string {
  return `","method":"${method}","url":${quote(url)}${route ? `,"route":"${route}"` : ''},"status":${status},"bytes":`
}

function describeClient({ remoteAddress, token, problem }: Access): string {
  return (
    `,"remoteAddress":${quote(String(remoteAddress))}` +
    `${token ? `,"token":${quote(token)}` : ''}${problem ? `,"problem":"${problem}"` : ''}` +
    `,"pid":${process.pid},"msg":"request"}\n`
  )
}

/** Matches text that needs no escaping in JSON. Even a remote address may be a client's text, from a proxy's header. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

function quote(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}

const maxPieces = 1000
const maxPieceBytes = 512

/** Caches parts of lines: one per key, replaced when it is asked for with another `detail`. */
class Pieces {
  readonly #kept = new Map<string, { detail: unknown; bytes: Uint8Array }>()
  readonly #describe: (access: Access) => Uint8Array

  constructor(describe: (access: Access) => Uint8Array) {
    this.#describe = describe
  }

  get(access: Access, key: string, detail: unknown): Uint8Array {
    const kept = this.#kept.get(key)
    return kept !== undefined && kept.detail === detail ? kept.bytes : this.#make(access, key, detail)
  }

  #make(access: Access, key: string, detail: unknown): Uint8Array {
    const bytes = this.#describe(access)
    if (bytes.length > maxPieceBytes) return bytes
    // Clearing it all now and then costs less than tracking which was used last.
    if (this.#kept.size >= maxPieces) this.#kept.clear()
    this.#kept.set(key, { detail, bytes })
    return bytes
  }
}
