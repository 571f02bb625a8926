// Negotiates the content coding, from Accept-Encoding (RFC 9110, section 12.5.3).
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'

export type Coding = 'zstd' | 'br' | 'gzip' | 'identity'

/** Codings that a client accepts, best first. */
export type Codings = readonly [Coding, ...Coding[]]

/** Bounds the cache: honest clients send few different texts. */
const maxKept = 200
const maxKeptLength = 100

/** Orders of preference: zstd is by far the cheapest for lists; documents are compressed only once. */
export const listCodings: readonly Coding[] = ['zstd', 'br', 'gzip', 'identity']
export const documentCodings: readonly Coding[] = ['br', 'zstd', 'gzip', 'identity']
const plain: Codings = ['identity']
/** Codings that `*` stands for, the most widely supported first. */
const any: readonly Coding[] = ['identity', 'gzip', 'br', 'zstd']

/**
 * Makes a function that reads an Accept-Encoding and returns the acceptable codings, best first. `order`: our
 * preference among codings of equal weight. Malformed elements are ignored. Named codings come before those that `*`
 * stands for. A client that refuses identity and names no other coding is treated as if it had sent `*`; one that
 * refuses every coding gets identity.
 */
export function makeNegotiator(order: readonly Coding[]): (accepted: string | undefined) => Codings {
  const kept = new LRUCache<string, Codings>({ max: maxKept })
  return (accepted) => {
    if (accepted === undefined) return plain
    const known = kept.get(accepted)
    if (known) return known
    const codings = rank(order, readWeights(accepted))
    if (accepted.length <= maxKeptLength) kept.set(accepted, codings)
    return codings
  }
}

function rank(order: readonly Coding[], weights: Map<string, number>): Codings {
  const weigh = (coding: Coding) => weights.get(coding) ?? 0
  const named = order.filter((coding) => weigh(coding) > 0).sort((one, other) => weigh(other) - weigh(one))
  const isAny = weights.get('*') ?? Number(named.length === 0 && weights.get('identity') === 0)
  const unnamed = (isAny ? any : weights.has('*') ? [] : plain).filter((coding) => !weights.has(coding))
  const [best = 'identity', ...others] = [...named, ...unnamed]
  return [best, ...others]
}

/** Matches an element of Accept-Encoding with its weight, up to the comma. */
const elements =
  /(?:^|,)[\t ]*(zstd|br|gzip|x-gzip|identity|\*)[\t ]*(?:;[\t ]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[\t ]*)?(?=,|$)/gi

function readWeights(accepted: string): Map<string, number> {
  const weights = new Map<string, number>()
  // RFC 9110, section 8.4.1.3: x-gzip is the older name of gzip.
  for (const [, name = '', weight = '1'] of accepted.matchAll(elements))
    weights.set(name.toLowerCase().replace(/^x-/, ''), Number(weight))
  return weights
}

/** `Vary` of an answer that has several codings, added to what CORS has set. */
export function varyByCoding(reply: FastifyReply): string {
  const before = reply.getHeader('vary')
  return before === undefined ? 'Accept-Encoding' : `${before}, Accept-Encoding`
}
