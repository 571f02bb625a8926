// The tokens of a store: issuing, rotating, revoking, looking up. Only the SHA-256 of a token is stored.
import { type StoredToken, StoreRefused, type TokenNotes } from '../store/store.ts'
import { hashToken, makeToken } from './format.ts'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** A stored token, whose scopes are ours. */
export type Token = StoredToken & { scopes: Scope[] }

export type NewToken = { name: string; scopes?: readonly Scope[]; expiresAt?: number | null }

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
    if (await this.#notes.hasAny()) return undefined
    const { id, token } = makeToken(firstTokenId)
    keep(token)
    return (await this.#add(id, token, { name: 'first' })) ? token : undefined
  }

  #add(id: string, token: string, { name, expiresAt = null, ...options }: NewToken): Promise<boolean> {
    const allowed = [...(options.scopes ?? scopes)]
    const createdAt = this.#now()
    return this.#notes.add({ id, name, hash: hashToken(token), scopes: allowed, createdAt, expiresAt })
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
    const latest = await this.#notes.findLatest(name, createdAt)
    const expiresAt = latest.expiresAt === null ? null : now + latest.expiresAt - latest.createdAt
    const formerExpiresAt = Math.min(now + overlapMs, formerEnd ?? Number.POSITIVE_INFINITY)
    // The successor must be newer, even if the clock was set back.
    const newer = {
      id,
      name,
      hash: hashToken(token),
      scopes,
      createdAt: Math.max(now, createdAt + 1),
      expiresAt,
    }
    if (await this.#notes.exchange(formerId, formerExpiresAt, newer, now))
      return { id, token, expiresAt, formerExpiresAt }
    throw new StoreRefused(
      `token ${formerId} cannot be rotated: it is not valid any more, or it ends already and a newer token named "${name}" is valid (plant-store token list)`,
    )
  }

  /** Finds tokens by their ids. */
  async find(ids: string[]): Promise<Map<string, Token>> {
    const found = (await this.#notes.find(ids)) as Token[]
    return new Map(found.map((token) => [token.id, token]))
  }

  /** Finds the valid tokens with a name, and the token with that id. */
  async findNamed(text: string): Promise<Token[]> {
    return (await this.#notes.findNamed(text, this.#now())) as Token[]
  }

  /** Number of tokens that are neither revoked nor expired. */
  countValid(): Promise<number> {
    return this.#notes.countValid(this.#now())
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
