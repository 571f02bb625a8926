// AUTH_FAILURE_LIMIT: failed authentications allowed per client address. Only further failures are refused: a valid
// token is served whatever others do from the same address.
import { isIPv4, isIPv6 } from 'node:net'
import { problems } from '../../../schemas/problems.ts'
import type { Rate } from '../../config/values.ts'
import type { ProblemError } from '../problem-error.ts'
import { Gcra } from './gcra.ts'
import { tooMany, toSeconds } from './rate-limit.ts'

/** The key shared by clients whose proxy hides their addresses. */
const nowhere = 'nowhere'

/**
 * Makes a function that counts a failure of an address, and returns the problem to answer with when it is one too many.
 * `memory`: shared by the threads of the process, which count together.
 */
export function makeFailureLimit(
  rate: Rate | undefined,
  memory?: SharedArrayBuffer,
): (address: string) => ProblemError | undefined {
  if (rate === undefined) return () => undefined
  const gcra = new Gcra(rate, memory && { memory })
  return function countFailure(address) {
    const { allowed, nextMs } = gcra.take(networkOf(address))
    return allowed ? undefined : tooMany(problems.failures, toSeconds(nextMs))
  }
}

/** The network that counts as one client: an IPv4 address, or the /64 that an IPv6 host has for itself. */
export function networkOf(address: string): string {
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return nowhere
  const mapped = address.slice(address.lastIndexOf(':') + 1)
  if (isIPv4(mapped)) return mapped
  const [before = '', after = ''] = address.split('::')
  const [head, tail] = [before, after].map((part) => (part === '' ? [] : part.split(':'))) as [
    string[],
    string[],
  ]
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0')
  const groups = [...head, ...zeros, ...tail].slice(0, 4)
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}
