// The tokens of a store: issuing, rotating, revoking, looking up. Only the SHA-256 of a token is stored.
import type { Token, TokenNotes } from '../store/engine.ts'
import { StoreRefused } from '../store/errors.ts'
import { hashToken, makeToken } from './format.ts'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** What a token has that is not said. */
const blank = { scopes: [...scopes], expiresAt: null, lastUsedAt: null, revokedAt: null }

export type NewToken = { name: string; scopes?: Scope[]; expiresAt?: number | null }

/** Precision of the last use of a token. */
export const touchMs = 60_000

/** The id of every store's first token, so that of many replicas starting at once only one makes it. */
const firstTokenId = '00000000'

export class Tokens {
  readonly #notes: TokenNotes
  readonly #now: () => number

  constructor(notes: TokenNotes, now: () => number = Date.now) {
    this.#notes = notes
    this.#now = now
  }

  /** Issues a token and returns its text, which is not stored. Rejects with StoreRefused when its name is taken. */
  async create(options: NewToken): Promise<string> {
    const { id, token } = makeToken()
    if (await this.#add(id, token, options)) return token
    throw new StoreRefused(
      `a valid token is named "${options.name}" already: choose another name, or rotate or revoke that one (plant-store token list)`,
    )
  }

  /** Issues the token `first`; undefined if the store has ever had a token. `keep` gets it before it becomes valid. */
  async createFirst(keep: (token: string) => void = () => {}): Promise<string | undefined> {
    if ((await this.#notes.count(0)).all > 0) return undefined
    const { id, token } = makeToken(firstTokenId)
    keep(token)
    return (await this.#add(id, token, { name: 'first' })) ? token : undefined
  }

  #add(id: string, token: string, options: NewToken): Promise<boolean> {
    const createdAt = this.#now()
    return this.#notes.add({ ...blank, ...options, id, hash: hashToken(token), createdAt })
  }

  /**
   * Issues a token with the name, scopes and lifetime of `former`, which then expires after `overlapMs`, or at its own
   * time if that is sooner: both are valid meanwhile, so that clients can change over one by one. Rejects with
   * StoreRefused when `former` is no longer valid, or was rotated before.
   */
  async rotate({ id: formerId, name, scopes, createdAt, expiresAt: formerEnd }: Token, overlapMs: number) {
    const now = this.#now()
    const { id, token } = makeToken()
    // Rotation shortens a token, so the lifetime of its latest successor counts, even if revoked.
    const latest = (await this.#notes.named(name)).findLast((one) => one.createdAt >= createdAt) as Token
    const expiresAt = latest.expiresAt === null ? null : now + latest.expiresAt - latest.createdAt
    const formerExpiresAt = Math.min(now + overlapMs, formerEnd ?? Number.POSITIVE_INFINITY)
    // The successor must be newer, even if the clock was set back.
    const newerAt = Math.max(now, createdAt + 1)
    const newer = { ...blank, id, name, hash: hashToken(token), scopes, createdAt: newerAt, expiresAt }
    if (await this.#notes.replace({ id: formerId, expiresAt: formerExpiresAt }, newer, now))
      return { id, token, expiresAt, formerExpiresAt }
    throw new StoreRefused(
      `token ${formerId} cannot be rotated: it is not valid any more, or it ends already and a newer token named "${name}" is valid (plant-store token list)`,
    )
  }

  /** Finds tokens by their ids. */
  async find(ids: string[]): Promise<Map<string, Token>> {
    return new Map((await this.#notes.find(ids)).map((token) => [token.id, token]))
  }

  /** Finds the valid tokens with a name, and the token with that id. */
  async findNamed(text: string): Promise<Token[]> {
    const now = this.#now()
    const named = await this.#notes.named(text)
    const isValid = ({ id, revokedAt, expiresAt }: Token) =>
      id !== text && revokedAt === null && (expiresAt === null || expiresAt > now)
    return [...(await this.#notes.find([text])), ...named.filter(isValid)]
  }

  /** Number of tokens that are neither revoked nor expired. */
  async countValid(): Promise<number> {
    return (await this.#notes.count(this.#now())).valid
  }

  /** Revokes a token; false when it does not exist or is already revoked. */
  revoke(id: string): Promise<boolean> {
    return this.#notes.revoke(id, this.#now())
  }

  /** Notes the use of a token, at most once per minute. */
  touch(id: string): Promise<void> {
    const now = this.#now()
    return this.#notes.touch(id, now, now - touchMs)
  }
}
