// Which content coding a client gets, from its Accept-Encoding (RFC 9110, section 12.5.3).
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'

export type Coding = 'zstd' | 'br' | 'gzip' | 'identity'

/** The weight of what is acceptable although nobody named it: below every weight that can be written. */
const unnamed = 0.0001

/** Clients send one of a few texts; whatever else comes cannot take much memory. */
const maxKept = 200
const maxKeptLength = 100

const plain: readonly Coding[] = ['identity']

/**
 * Makes what reads an Accept-Encoding: it gives the codings that are acceptable, the best one first. `order`: ours, for
 * those that a client likes equally. Malformed elements count for nothing. A client that refuses the plain bytes and
 * names no other coding accepts every one; one that refuses every coding gets the plain bytes.
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
  const byDefault = (coding: Coding) => (coding === 'identity' || weights.get('identity') === 0 ? unnamed : 0)
  const weigh = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? byDefault(coding)
  const acceptable = order.filter((coding) => weigh(coding) > 0)
  return acceptable.length > 0 ? acceptable.sort((one, other) => weigh(other) - weigh(one)) : plain
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
