// Ids that tie log lines to a request: the one that a client or proxy gave it, or one that is made here, and its trace.
import { randomBytes } from 'node:crypto'

/** The ids of RFC 9562, ULIDs, base64 and what proxies make; nothing that would have to be escaped anywhere. */
const wellFormed = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** Makes a function that takes the id of a request from `X-Request-Id`, or makes one where that is not well-formed. */
export function makeRequestIds(): (given?: string | string[]) => string {
  // Random bytes for each request would cost more than its line.
  const prefix = randomBytes(5).toString('hex')
  let block = `${prefix}-`
  let made = 0
  return (given) => {
    if (typeof given === 'string' && wellFormed.test(given)) return given
    made++
    const last = made % lastDigits.length
    // Digits cost ten times as much when all of them are made anew.
    if (last === 0) block = `${prefix}-${(made / lastDigits.length).toString(36)}`
    return block + lastDigits[last]
  }
}

/** The last two digits of an id, in base 36. */
const lastDigits = Array.from({ length: 36 ** 2 }, (_, n) => n.toString(36).padStart(2, '0'))

/** `traceId`: of the whole trace; `spanId`: of the caller's part of it, or of ours with the caller's, or null, as its parent. */
export type Trace = { traceId: string; spanId: string; flags: number; parent?: Trace | null }

/** W3C Trace Context, section 3.2. Later versions may say more behind the flags; version ff is none. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** The ids in a `traceparent`; undefined when it is not valid. */
export function readTrace(header: string | string[] | undefined): Trace | undefined {
  if (typeof header !== 'string') return undefined
  const [, traceId, spanId, flags] = traceparent.exec(header) ?? []
  // Version 00 ends with the flags.
  if (traceId === undefined || spanId === undefined) return undefined
  const trace = { traceId, spanId, flags: Number(`0x${flags}`) }
  return header.startsWith('00-') && header.length > 55 ? undefined : trace
}
