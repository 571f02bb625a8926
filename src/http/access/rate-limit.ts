// RATE_LIMIT: how many requests each token has, and what answers say of it (draft-ietf-httpapi-ratelimit-headers-10).
import { type KnownProblem, problems } from '../../../schemas/problems.ts'
import type { Rate } from '../../config/values.ts'
import type { Exchange } from '../connection/exchange.ts'
import { ProblemError } from '../problem-error.ts'
import { Gcra } from './gcra.ts'

/** The fields of answers to requests that are counted, as `Access-Control-Expose-Headers` names them too. */
export const rateLimitFields = ['RateLimit', 'RateLimit-Policy'] as const

/**
 * Makes a function that counts a request of a known token. It throws `rate-limited`. `memory`: where the threads of the
 * process count together.
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

/** A 429. `waitS`: whole seconds. */
export function tooMany(problem: KnownProblem, waitS: number): ProblemError {
  return new ProblemError(problem, { headers: { 'retry-after': String(waitS) } })
}

/** Sums of floating-point times are too large by less than this, and must not make a second more. */
const roundingMs = 1e-3

/** Whole seconds that are not too few. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil((ms - roundingMs) / 1000))
}
