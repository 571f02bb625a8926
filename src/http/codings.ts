// Negotiates the content coding, from Accept-Encoding (RFC 9110, section 12.5.3).
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'

export type Coding = 'zstd' | 'br' | 'gzip' | 'identity'

/** Clients send one of a few texts; whatever else comes cannot take much memory. */
const maxKept = 200
const maxKeptLength = 100

/** Orders of preference: zstd is the cheapest by far for lists, what is compressed once may take its time. */
export const listCodings: readonly Coding[] = ['zstd', 'br', 'gzip', 'identity']
export const documentCodings: readonly Coding[] = ['br', 'zstd', 'gzip', 'identity']
const plain: readonly Coding[] = ['identity']
/** Codings that `*` stands for, best first: by how many clients can read them. */
const any: readonly Coding[] = ['identity', 'gzip', 'br', 'zstd']

/**
 * Makes what reads an Accept-Encoding: it gives the codings that are acceptable, the best one first. `order`: ours, for
 * those that a client likes equally. Malformed elements count for nothing. Codings that are named come before what `*`
 * means. A client that refuses the plain bytes and names no other coding is taken to say `*`; one that refuses every
 * coding gets the plain bytes.
 */
export function makeNegotiator(
  order: readonly Coding[],
): (accepted: string | undefined) => readonly Coding[] {
  const kept = new LRUCache<string, readonly Coding[]>({ max: maxKept })
  return (accepted) => {
    if (accepted === undefined) return plain
    const known = kept.get(accepted)
    if (known) return known
    const codings = rank(order, readWeights(accepted))
    if (accepted.length <= maxKeptLength) kept.set(accepted, codings)
    return codings
  }
}

function rank(order: readonly Coding[], weights: Map<string, number>): readonly Coding[] {
  const weigh = (coding: Coding) => weights.get(coding) ?? 0
  const named = order.filter((coding) => weigh(coding) > 0).sort((one, other) => weigh(other) - weigh(one))
  const isAny = weights.get('*') ?? Number(named.length === 0 && weights.get('identity') === 0)
  const unnamed = (isAny ? any : weights.has('*') ? [] : plain).filter((coding) => !weights.has(coding))
  const acceptable = [...named, ...unnamed]
  return acceptable.length > 0 ? acceptable : plain
}

/** The elements of Accept-Encoding that matter here, each with its weight. What they end with is not theirs. */
const elements =
  /(?:^|,)[\t ]*(zstd|br|gzip|x-gzip|identity|\*)[\t ]*(?:;[\t ]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[\t ]*)?(?=,|$)/gi

function readWeights(accepted: string): Map<string, number> {
  const weights = new Map<string, number>()
  // RFC 9110, section 8.4.1.3: the older name of gzip.
  for (const [, name = '', weight = '1'] of accepted.matchAll(elements))
    weights.set(name.toLowerCase().replace(/^x-/, ''), Number(weight))
  return weights
}

/** `Vary` of an answer that has several codings. Cross-origin answers vary by more. */
export function varyByCoding(reply: FastifyReply): string {
  const before = reply.getHeader('vary')
  return before === undefined ? 'Accept-Encoding' : `${before}, Accept-Encoding`
}
