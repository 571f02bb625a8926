// One line per request, written by hand: through a logger's machinery it would be the most expensive part of a request.
// Most of a line is like the line before, so it is put together from pieces that are kept as bytes.
import { LineBytes } from '../logging/line-bytes.ts'
import type { LineSink } from '../logging/open-log.ts'
import type { Access } from './connection/exchange.ts'
import type { Trace } from './connection/request-ids.ts'

export type AccessLog = {
  add(access: Access): void
  /** Hands on what has been gathered. */
  flush(): void
}

/**
 * Lines are gathered up to this size: bytes in a buffer cost the garbage collector nothing, strings do; and each time that
 * some are handed on, a thread is woken for them, which costs as much as 200 lines.
 */
const chunkBytes = 256 * 1024
/** The longest line, with a URL as long as Node takes it and every character of it escaped. */
const maxLineBytes = 100 * 1024

/**
 * `isIso`: whether times are RFC 3339 in UTC, and not milliseconds since 1970; `mask`: takes secrets out of what clients
 * have sent.
 */
export type AccessLogOptions = { isIso?: boolean; mask?: (text: string) => string; now?: () => number }

/** Makes a log of access lines in pino's form. The `Authorization` header is no part of them. */
export function makeAccessLog(
  sink: LineSink,
  { isIso = false, mask = String, now = Date.now }: AccessLogOptions = {},
): AccessLog {
  const lines = new LineBytes(chunkBytes + maxLineBytes)
  const time = makeTime(isIso)
  /** By method: GET and POST have a path in common. */
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
      // Ids that were made here are no secret, and need no look.
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

/** The beginning of a line: many are of one millisecond. */
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

/** Milliseconds, to the microsecond. */
function putDuration(lines: LineBytes, durationMs: number): void {
  const us = Math.round(durationMs * 1000)
  const ms = Math.floor(us / 1000)
  lines.putAscii(',"durationMs":')
  lines.putNumber(ms)
  lines.putAscii('.')
  lines.putNumber(us - ms * 1000, 3)
}

/** Piece by piece: a text that is put together first takes half as long again. */
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

// A remote address is a client's text too, when it comes from a proxy's header.
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

function quote(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}

const maxPieces = 1000
const maxPieceBytes = 512

/** Parts of lines, the latest for each key; one that differs in a detail takes its place. */
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
    // Starting anew now and then costs less than knowing which was used last.
    if (this.#kept.size >= maxPieces) this.#kept.clear()
    this.#kept.set(key, { detail, bytes })
    return bytes
  }
}
