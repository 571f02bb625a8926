// RATE_LIMIT: limits the requests of each token in a scope whose routes are authenticated by earlier hooks.
import rateLimitPlugin from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from '../problem-error.ts'
import type { Rate } from '../setting-values.ts'

/** The most tokens that are counted at a time; the least recently used are forgotten. */
const maxTokens = 65_536

/**
 * Counts requests by the id of their token, in windows that begin with a first request. Answers have the fields of
 * draft-ietf-httpapi-ratelimit-headers-10; @fastify/rate-limit itself would send those of an older draft.
 */
export const rateLimit = fp<Rate>(limitRequests, { name: 'rate-limit', decorators: { request: ['grant'] } })

async function limitRequests(app: FastifyInstance, { count, perMs }: Rate): Promise<void> {
  const limit = { max: count, timeWindow: perMs, keyGenerator: ({ grant }: FastifyRequest) => grant.id }
  await app.register(rateLimitPlugin, { global: false, cache: maxTokens, ...limit })
  // Without options of its own, it counts in the cache of the plugin.
  const takeNext = app.createRateLimit()
  // The plugin reads the shared count after an `await`: without turns, concurrent requests would all get the last count.
  let turn: Promise<unknown> = Promise.resolve()
  const take = (request: FastifyRequest) => {
    const taken = turn.then(() => takeNext(request))
    turn = taken.catch(() => {})
    return taken
  }
  const policy = `"default";q=${count};w=${perMs / 1000}`

  app.addHook('onRequest', async (request, reply) => {
    const taken = await take(request)
    // Only narrows the type: `isAllowed` means that the key is on an allow list, and there is none.
    if (taken.isAllowed) return
    const { remaining, ttlInSeconds, isExceeded } = taken
    reply.headers({ 'ratelimit-policy': policy, ratelimit: `"default";r=${remaining};t=${ttlInSeconds}` })
    if (isExceeded)
      throw new ProblemError(problems.rate, { headers: { 'retry-after': String(ttlInSeconds) } })
  })
}
