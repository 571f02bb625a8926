// Ids that tie log lines to a request: its own, from a client or proxy or made here, and those of its trace.
import { randomBytes } from 'node:crypto'

/** Allows UUIDs (RFC 9562), ULIDs, base64 and the ids of common proxies; nothing that would need escaping. */
const wellFormed = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** Makes a function that returns the `X-Request-Id` if it is well-formed, and a new id otherwise. */
export function makeRequestIds(): (given?: string | string[]) => string {
  // Random bytes per request would cost more than its log line.
  const prefix = randomBytes(5).toString('hex')
  let made = 0
  return (given) =>
    typeof given === 'string' && wellFormed.test(given) ? given : `${prefix}-${(++made).toString(36)}`
}

/** Ids of a span. `parent`: of the service's own span, the caller's one or null; undefined in a span of the caller. */
export type Trace = { traceId: string; spanId: string; flags: number; parent?: Trace | null }

/** Matches a W3C Trace Context (section 3.2). Later versions may have more behind the flags; version ff is invalid. */
const traceparent =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** Reads a `traceparent`; undefined when it is not valid. */
export function readTrace(header: string | string[] | undefined): Trace | undefined {
  if (typeof header !== 'string') return undefined
  const [, version, traceId = '', spanId = '', flags] = traceparent.exec(header) ?? []
  // Version 00 ends with the flags.
  if (version === undefined || (version === '00' && header.length > 55)) return undefined
  return { traceId, spanId, flags: Number(`0x${flags}`) }
}
