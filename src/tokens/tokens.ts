// The tokens of a store: issuing and rotating. Only the SHA-256 of a token is stored.
import type { Token, TokenTable } from '../store/engine.ts'
import { hashToken, makeToken } from './format.ts'

/** The permissions of tokens. */
export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** Defaults of a new token. */
const defaults = { scopes: [...scopes], expiresAt: null, lastUsedAt: null, revokedAt: null }

export type NewToken = { name: string; scopes?: Scope[]; expiresAt?: number | null; createdAt?: number }

/** Issues a token, of which only the hash is stored; undefined if its id exists or a valid token has its name. */
export async function createToken(table: TokenTable, options: NewToken, { id, token } = makeToken()) {
  const made = { ...defaults, createdAt: Date.now(), ...options, id, hash: hashToken(token) }
  return (await table.add(made)) ? token : undefined
}

/** `overlapMs`: time for which the former token stays valid, unless it expires earlier. */
type RotateOptions = { overlapMs: number; now?: number }

/**
 * Issues a token with the name, scopes and lifetime of `former`. Both are valid during the overlap, so that clients can
 * switch one by one. Undefined if `former` is not valid, or was rotated before and its successor is valid.
 */
export async function rotateToken(table: TokenTable, former: Token, options: RotateOptions) {
  const { overlapMs, now = Date.now() } = options
  const { name, scopes, createdAt } = former
  const { id, token } = makeToken()
  // The successor must be newer, even if the clock was set back since.
  const newerAt = Math.max(now, createdAt + 1)
  // Rotation shortens the lifetime of a token, so use the lifetime of its latest successor, even if that is revoked.
  const isLater = (one: Token) => one.name === name && one.createdAt <= newerAt
  const latest = (await table.search(name)).findLast(isLater) ?? former
  const expiresAt = latest.expiresAt === null ? null : newerAt + latest.expiresAt - latest.createdAt
  const formerExpiresAt = Math.min(now + overlapMs, former.expiresAt ?? Number.POSITIVE_INFINITY)
  const newer = { ...defaults, id, name, hash: hashToken(token), scopes, createdAt: newerAt, expiresAt }
  const isReplaced = await table.replace({ id: former.id, expiresAt: formerExpiresAt }, newer, now)
  return isReplaced ? { id, token, expiresAt, formerExpiresAt } : undefined
}

/** Returns a predicate: the token is neither revoked nor expired. */
export function isValidAt(nowMs: number) {
  return ({ revokedAt, expiresAt }: Token) => revokedAt === null && (expiresAt === null || expiresAt > nowMs)
}
