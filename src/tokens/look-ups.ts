// Looks tokens up for all who wait, many in one query: a flood of made-up tokens costs the database a few queries, and
// those who were known before go first.
import { StoreUnavailable } from '../store/store.ts'
import type { Token, Tokens } from './tokens.ts'

type Waiting = { id: string; found: (token: Token | undefined) => void; failed: (error: unknown) => void }

/** How many tokens one query looks for, and how many unknown ones may wait for theirs. */
const maxTokens = 100
const maxWaiting = 1000

export class LookUps {
  readonly #tokens: Tokens
  #known: Waiting[] = []
  #unknown: Waiting[] = []
  #looking = false

  constructor(tokens: Tokens) {
    this.#tokens = tokens
  }

  /** Resolves to the token with an id. `known`: it was valid before. Rejects with StoreUnavailable. */
  find(id: string, { known }: { known: boolean }): Promise<Token | undefined> {
    return new Promise((found, failed) => {
      if (known) this.#known.push({ id, found, failed })
      else if (this.#unknown.length < maxWaiting) this.#unknown.push({ id, found, failed })
      else throw new StoreUnavailable('overloaded', 'too many unknown tokens are waiting to be looked up')
      if (this.#looking) return
      this.#looking = true
      setImmediate(() => void this.#look())
    })
  }

  async #look(): Promise<void> {
    while (this.#known.length + this.#unknown.length > 0) {
      const batch = this.#known.splice(0, maxTokens)
      batch.push(...this.#unknown.splice(0, maxTokens - batch.length))
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
