// Limits of requests and of failed authentications. `memory` is shared by the threads of the process, which count
// together.
import { type KnownProblem, problems } from '../../../schemas/problems.ts'
import type { Rate } from '../../config/values.ts'
import { networkOf } from '../connection/address.ts'
import type { Exchange } from '../connection/exchange.ts'
import { ProblemError } from '../problem-error.ts'
import { makeGcra } from './gcra.ts'

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
