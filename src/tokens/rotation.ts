// Rotates tokens: the old and the new one are both valid for a while, so that clients can change over one by one.
import { type Row, type Sql, StoreRefused } from '../store/store.ts'
import { makeToken } from './format.ts'
import { hashToken, type Token } from './tokens.ts'

/** `formerExpiresAt`: end of the old token. */
export type Rotated = { id: string; token: string; expiresAt: number | null; formerExpiresAt: number }

/** Condition for a token that was not rotated before: one that expires has no newer token of its name. */
const isCurrent = `id = $4 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5 AND NOT EXISTS (
  SELECT 1 FROM tokens AS newer WHERE newer.name = tokens.name AND newer.created_at > tokens.created_at
    AND newer.revoked_at IS NULL AND (newer.expires_at IS NULL OR newer.expires_at > $5)))`

/** Query for the lifetime: rotation shortens a token, so that of its latest successor counts, even if revoked. */
const latest = `SELECT created_at, expires_at FROM tokens WHERE name = $1 AND created_at >= $2
  ORDER BY created_at DESC LIMIT 1`

/** One statement, so that the new token and the end of the old one come together. */
const exchange = `
  INSERT INTO tokens (id, name, hash, scopes, created_at, expires_at)
  SELECT id, name, hash, scopes, created_at, expires_at FROM (
    SELECT CAST($1 AS TEXT) AS id, name, CAST($2 AS TEXT) AS hash, scopes,
      CAST($7 AS BIGINT) AS created_at, CAST($3 AS BIGINT) AS expires_at FROM tokens WHERE ${isCurrent}
    UNION ALL
    SELECT id, name, hash, scopes, created_at, CAST($6 AS BIGINT) FROM tokens WHERE ${isCurrent}
  ) AS pair WHERE true
  ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`

/**
 * Issues a token with the name, scopes and lifetime of `former`, which then expires after `overlapMs`, or at its own
 * time if that is sooner. Rejects with StoreRefused when `former` is no longer valid, or was rotated before.
 */
export async function rotateToken(
  sql: Sql,
  former: Token,
  { overlapMs, now }: { overlapMs: number; now: number },
): Promise<Rotated> {
  const { id, token } = makeToken()
  const { name, createdAt, expiresAt: formerEnd } = former
  const [given] = await sql.select(latest, [name, createdAt])
  const { created_at, expires_at } = given as Row
  const expiresAt = expires_at === null ? null : now + Number(expires_at) - Number(created_at)
  const formerExpiresAt = Math.min(now + overlapMs, formerEnd ?? Number.POSITIVE_INFINITY)
  // The successor must be newer, even if the clock was set back.
  const newerAt = Math.max(now, createdAt + 1)
  const values = [id, hashToken(token), expiresAt, former.id, now, formerExpiresAt, newerAt]
  if ((await sql.execute(exchange, values)) === 2) return { id, token, expiresAt, formerExpiresAt }
  throw new StoreRefused(
    `token ${former.id} cannot be rotated: it is not valid any more, or it ends already and a newer token named "${former.name}" is valid (plant-store token list)`,
  )
}
