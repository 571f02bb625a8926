// Looks up many tokens in one query: those that ask while a query is in progress share the next one, so that a flood of
// made-up tokens costs a few queries, and known tokens do not wait behind it.
import { setImmediate } from 'node:timers/promises'
import { tokensPerQuery, unknownTokens } from '../limits.ts'
import type { Token } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import type { Tokens } from './tokens.ts'

type Query = { ids: Set<string>; unknown: number; found: Promise<Map<string, Token>> }

/**
 * Makes `find(id, known)`, which resolves to the token with an id; `known`: it was valid before. It rejects with
 * StoreUnavailable.
 */
export function makeLookUp(tokens: Tokens) {
  let next: Query | undefined
  /** Ends with the last query; never rejects. */
  let last: Promise<unknown> = Promise.resolve()

  function prepare(): Query {
    const ids = new Set<string>()
    const found = last.then(async () => {
      // Those of the same turn of the event loop come along.
      await setImmediate()
      next = undefined
      return findAll(tokens, [...ids])
    })
    last = found.catch(() => {})
    return { ids, unknown: 0, found }
  }

  return async function find(id: string, known: boolean): Promise<Token | undefined> {
    next ??= prepare()
    const query = next
    if (!known && query.unknown++ >= unknownTokens)
      throw new StoreUnavailable('overloaded', 'too many unknown tokens are waiting to be looked up')
    query.ids.add(id)
    return (await query.found).get(id)
  }
}

/** Finds tokens in queries of a size that SQLite, which searches parameters one by one, answers in a few milliseconds. */
async function findAll(tokens: Tokens, ids: string[]): Promise<Map<string, Token>> {
  const all = new Map<string, Token>()
  for (let start = 0; start < ids.length; start += tokensPerQuery) {
    if (start > 0) await setImmediate()
    const found = await tokens.find(ids.slice(start, start + tokensPerQuery))
    for (const [id, token] of found) all.set(id, token)
  }
  return all
}
