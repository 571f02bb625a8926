// RATE_LIMIT: limits the requests of each token. Register it after authentication.
import rateLimitPlugin from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from '../problem-error.ts'
import type { Rate } from '../setting-values.ts'

/** Maximum number of tokens with a count; the least recently used are evicted. */
const maxTokens = 65_536

/**
 * Counts requests by token id, in windows that begin with the first request. Responses have the fields of
 * draft-ietf-httpapi-ratelimit-headers-10; @fastify/rate-limit itself would send those of an older draft.
 */
export const rateLimit = fp<Rate>(limitRequests, { name: 'rate-limit', decorators: { request: ['grant'] } })

async function limitRequests(app: FastifyInstance, { count, perMs }: Rate): Promise<void> {
  /** Wall clock minus monotonic clock, when the wall clock was last set. */
  let offsetMs = 0
  // The plugin counts by the wall clock. If that is set back, new windows begin under other keys.
  const keyGenerator = ({ grant }: FastifyRequest) => {
    const ms = Date.now() - performance.now()
    if (Math.abs(ms - offsetMs) > perMs / 2) offsetMs = ms
    return `${offsetMs} ${grant.id}`
  }
  const limit = { max: count, timeWindow: perMs, cache: maxTokens }
  await app.register(rateLimitPlugin, { global: false, keyGenerator, ...limit })
  // Without options, it counts in the cache of the plugin.
  const takeNext = app.createRateLimit()
  // One at a time: the plugin reads a shared count after an `await`, so concurrent requests would share the last one.
  let turn: Promise<unknown> = Promise.resolve()
  const policy = `"default";q=${count};w=${perMs / 1000}`

  app.addHook('onRequest', async (request, reply) => {
    const taking = turn.then(() => takeNext(request))
    turn = taking.catch(() => {})
    const taken = await taking
    // Narrows the type: `isAllowed` means that the key is on an allow list, which is not used.
    if (taken.isAllowed) return
    const { remaining, ttlInSeconds, isExceeded } = taken
    reply.headers({ 'ratelimit-policy': policy, ratelimit: `"default";r=${remaining};t=${ttlInSeconds}` })
    if (isExceeded)
      throw new ProblemError(problems.rate, { headers: { 'retry-after': String(ttlInSeconds) } })
  })
}
