// RATE_LIMIT: requests allowed per token, and the headers that tell (draft-ietf-httpapi-ratelimit-headers-10).
import { type KnownProblem, problems } from '../../../schemas/problems.ts'
import type { Rate } from '../../config/values.ts'
import type { Exchange } from '../connection/exchange.ts'
import { ProblemError } from '../problem-error.ts'
import { Gcra } from './gcra.ts'

/** Header fields of answers to counted requests, also listed in `Access-Control-Expose-Headers`. */
export const rateLimitFields = ['RateLimit', 'RateLimit-Policy'] as const

/**
 * Makes a function that counts a request of a valid token, and throws `rate-limited` when it is one too many. `memory`:
 * shared by the threads of the process, which count together.
 */
export function makeRateLimit(
  rate: Rate | undefined,
  memory?: SharedArrayBuffer,
): (exchange: Exchange) => void {
  if (rate === undefined) return () => {}
  const gcra = new Gcra(rate, memory && { memory })
  const policy = `"default";q=${rate.count};w=${rate.perMs / 1000}`
  return function countRequest(exchange) {
    const { owner, reply } = exchange
    const { allowed, remaining, nextMs } = gcra.take(owner)
    const waitS = toSeconds(nextMs)
    exchange.hasExtraHeaders = true
    reply.header('ratelimit-policy', policy).header('ratelimit', `"default";r=${remaining};t=${waitS}`)
    if (!allowed) throw tooMany(problems.rate, waitS)
  }
}

/** Makes a 429. `waitS`: whole seconds. */
export function tooMany(problem: KnownProblem, waitS: number): ProblemError {
  return new ProblemError(problem, { headers: { 'retry-after': String(waitS) } })
}

/** Rounding errors of floating-point times are below this; they must not add a second. */
const roundingMs = 1e-3

/** Milliseconds in whole seconds, rounded up; at least 1. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil((ms - roundingMs) / 1000))
}
