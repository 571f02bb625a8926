// Limits of requests and of failed authentications. `memory` is shared by the threads of the process, which count
// together.
import { isIPv4, isIPv6 } from 'node:net'
import { type KnownProblem, problems } from '../../../schemas/problems.ts'
import type { Rate } from '../../config/values.ts'
import type { Exchange } from '../connection/exchange.ts'
import { ProblemError } from '../problem-error.ts'
import { makeGcra } from './gcra.ts'

/** Header fields of answers to counted requests, also listed in `Access-Control-Expose-Headers`. */
export const rateLimitFields = ['RateLimit', 'RateLimit-Policy'] as const

/**
 * RATE_LIMIT: makes a function that counts a request of a valid token, sets the headers that tell
 * (draft-ietf-httpapi-ratelimit-headers-10), and throws `rate-limited` when it is one too many.
 */
export function makeRateLimit(rate: Rate, memory?: SharedArrayBuffer): (exchange: Exchange) => void {
  const take = makeGcra(rate, { memory })
  const policy = `"default";q=${rate.count};w=${rate.perMs / 1000}`
  return (exchange) => {
    const { owner, reply } = exchange
    const { allowed, remaining, nextMs } = take(owner)
    const waitS = toSeconds(nextMs)
    reply.header('ratelimit-policy', policy).header('ratelimit', `"default";r=${remaining};t=${waitS}`)
    if (!allowed) throw tooMany(problems.rate, waitS)
  }
}

/** The key shared by clients whose proxy hides their addresses. */
const nowhere = 'nowhere'

/**
 * AUTH_FAILURE_LIMIT: makes a function that counts a failed authentication of an address, and returns the problem to
 * answer with when it is one too many. Only further failures are refused: a valid token is served whatever others do
 * from the same address.
 */
export function makeFailureLimit(rate: Rate, memory?: SharedArrayBuffer) {
  const take = makeGcra(rate, { memory })
  return (address: string): ProblemError | undefined => {
    const { allowed, nextMs } = take(networkOf(address))
    return allowed ? undefined : tooMany(problems.failures, toSeconds(nextMs))
  }
}

/** The network that counts as one client: an IPv4 address, or the /64 that an IPv6 host has for itself. */
export function networkOf(address: string): string {
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return nowhere
  const [withoutZone = ''] = address.split('%', 1)
  const parts = withoutZone.split(':')
  const last = parts.at(-1) as string
  if (isIPv4(last)) return last
  const zeros = '0:'.repeat(9 - parts.length)
  const groups = withoutZone.replace('::', `:${zeros}`).split(':').slice(0, 4)
  return groups.map((group) => Number(`0x0${group}`).toString(16)).join(':')
}

/** Makes a 429. `waitS`: whole seconds. */
function tooMany(problem: KnownProblem, waitS: number): ProblemError {
  return new ProblemError(problem, { headers: { 'retry-after': String(waitS) } })
}

/** Rounding errors of floating-point times are below this; they must not add a second. */
const roundingMs = 1e-3

/** Milliseconds in whole seconds, rounded up; at least 1. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil((ms - roundingMs) / 1000))
}
