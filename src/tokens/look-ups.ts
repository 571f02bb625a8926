// Looks up many tokens in one query: a flood of made-up tokens costs a few queries, and known tokens do not wait behind
// it.
import { tokensPerLookUp, unknownTokens } from '../limits.ts'
import { FairQueue } from '../runtime/fair-pool.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { Token, Tokens } from './tokens.ts'

type Waiting = { id: string; found: (token: Token | undefined) => void; failed: (error: unknown) => void }

export class LookUps {
  readonly #tokens: Tokens
  readonly #waiting = new FairQueue<Waiting>()
  #looking = false

  constructor(tokens: Tokens) {
    this.#tokens = tokens
  }

  /** Finds the token with an id. `known`: it was valid before. Rejects with StoreUnavailable. */
  find(id: string, { known }: { known: boolean }): Promise<Token | undefined> {
    return new Promise((found, failed) => {
      if (!known && this.#waiting.count('unknown') >= unknownTokens)
        throw new StoreUnavailable('overloaded', 'too many unknown tokens are waiting to be looked up')
      this.#waiting.put(known ? 'known' : 'unknown', { id, found, failed })
      if (this.#looking) return
      this.#looking = true
      setImmediate(() => void this.#look())
    })
  }

  async #look(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch: Waiting[] = []
      while (this.#waiting.size > 0 && batch.length < tokensPerLookUp)
        batch.push(this.#waiting.take() as Waiting)
      await this.#lookFor(batch)
    }
    this.#looking = false
  }

  async #lookFor(batch: Waiting[]): Promise<void> {
    try {
      const tokens = await this.#tokens.find([...new Set(batch.map(({ id }) => id))])
      for (const { id, found } of batch) found(tokens.get(id))
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
  }
}
