// The tokens of a store: issuing, rotating, revoking, looking up. Only the SHA-256 of a token is stored.
import type { Token, TokenTable } from '../store/engine.ts'
import { hashToken, makeToken } from './format.ts'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** Defaults of a new token. */
const defaults = { scopes: [...scopes], expiresAt: null, lastUsedAt: null, revokedAt: null }

export type NewToken = { name: string; scopes?: Scope[]; expiresAt?: number | null }

/** The id of every store's first token: of several replicas that start at once, only one can create it. */
const firstTokenId = '00000000'

export class Tokens {
  readonly #table: TokenTable
  readonly #now: () => number

  constructor(table: TokenTable, now: () => number = Date.now) {
    this.#table = table
    this.#now = now
  }

  /** Issues a token and returns its text, which is not stored; undefined if a valid token has its name. */
  async create(options: NewToken): Promise<string | undefined> {
    const { id, token } = makeToken()
    return (await this.#add(id, token, options)) ? token : undefined
  }

  /** Issues the token `first`; undefined if the store has ever had a token. `keep` gets it before it becomes valid. */
  async createFirst(keep: (token: string) => void = () => {}): Promise<string | undefined> {
    if ((await this.#table.all()).length > 0) return undefined
    const { id, token } = makeToken(firstTokenId)
    keep(token)
    return (await this.#add(id, token, { name: 'first' })) ? token : undefined
  }

  #add(id: string, token: string, options: NewToken): Promise<boolean> {
    const made = { ...defaults, ...options, id, hash: hashToken(token), createdAt: this.#now() }
    return this.#isStored(made, this.#table.add(made))
  }

  /** Resolves as `change` does, which stores a new token. */
  #isStored({ id, hash }: Token, change: Promise<boolean>): Promise<boolean> {
    return change.catch(async (error) => {
      // The answer may have been lost, but nobody else knows this token.
      const found = await this.#table.find(id).catch(() => undefined)
      if (found?.hash === hash) return true
      throw error
    })
  }

  /**
   * Issues a token with the name, scopes and lifetime of `former`, which then expires after `overlapMs`, or at its own
   * expiry if that is sooner. Both are valid meanwhile, so that clients can change over one by one. Undefined if
   * `former` is no longer valid, or was rotated before and its successor is valid.
   */
  async rotate({ id: formerId, name, scopes, createdAt, expiresAt: formerEnd }: Token, overlapMs: number) {
    const now = this.#now()
    const { id, token } = makeToken()
    // Rotation shortens a token's own lifetime, so the lifetime is that of its latest successor, even a revoked one.
    const isSuccessor = (one: Token) => one.name === name && one.createdAt >= createdAt
    const latest = (await this.#table.all()).findLast(isSuccessor) as Token
    const expiresAt = latest.expiresAt === null ? null : now + latest.expiresAt - latest.createdAt
    const formerExpiresAt = Math.min(now + overlapMs, formerEnd ?? Number.POSITIVE_INFINITY)
    // The successor must be newer, even if the clock was set back.
    const newerAt = Math.max(now, createdAt + 1)
    const newer = { ...defaults, id, name, hash: hashToken(token), scopes, createdAt: newerAt, expiresAt }
    const change = this.#table.replace({ id: formerId, expiresAt: formerExpiresAt }, newer, now)
    return (await this.#isStored(newer, change)) ? { id, token, expiresAt, formerExpiresAt } : undefined
  }

  /** Finds the valid tokens with a name, and the token with that id. */
  async findNamed(text: string): Promise<Token[]> {
    const isValid = isValidAt(this.#now())
    return (await this.#table.all()).filter((one) => one.id === text || (one.name === text && isValid(one)))
  }

  /** Number of tokens that are neither revoked nor expired. */
  async countValid(): Promise<number> {
    return (await this.#table.all()).filter(isValidAt(this.#now())).length
  }

  /** Revokes a token; false when it does not exist or is already revoked. */
  revoke(id: string): Promise<boolean> {
    return this.#table.revoke(id, this.#now())
  }
}

export function isValidAt(nowMs: number) {
  return ({ revokedAt, expiresAt }: Token) => revokedAt === null && (expiresAt === null || expiresAt > nowMs)
}
