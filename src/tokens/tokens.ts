// The tokens in the database: issuing, rotating, revoking, looking up. Only the SHA-256 of a token is stored.
import { type Row, type Sql, StoreRefused } from '../store/store.ts'
import { hashToken, makeToken } from './format.ts'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** A stored token. Times are milliseconds since 1970. */
export type Token = {
  id: string
  name: string
  hash: string
  scopes: Scope[]
  createdAt: number
  expiresAt: number | null
  lastUsedAt: number | null
  revokedAt: number | null
}

export type NewToken = { name: string; scopes?: readonly Scope[]; expiresAt?: number | null }

/** Precision of the last use of a token. */
export const touchMs = 60_000

/** The id of every store's first token, so that of many replicas starting at once only one makes it. */
const firstTokenId = '00000000'

export const tokenColumns = [
  'id',
  'name',
  'hash',
  'scopes',
  'created_at',
  'expires_at',
  'last_used_at',
  'revoked_at',
] as const

/** Condition for a row to be valid at a time. */
const isValid = (time: string) => `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${time})`

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

export class Tokens {
  readonly #sql: Sql
  readonly #now: () => number

  constructor(sql: Sql, now: () => number = Date.now) {
    this.#sql = sql
    this.#now = now
  }

  /** Issues a token and returns its text, which is not stored. Rejects with StoreRefused when its name is taken. */
  async create(options: NewToken): Promise<string> {
    const { id, token } = makeToken()
    if ((await this.#insert(id, token, options)) === 1) return token
    throw new StoreRefused(
      `a valid token is named "${options.name}" already: choose another name, or rotate or revoke that one (plant-store token list)`,
    )
  }

  /** Issues the token `first`; undefined if the store has ever had a token. `keep` gets it before it becomes valid. */
  async createFirst(keep: (token: string) => void = () => {}): Promise<string | undefined> {
    if ((await this.#sql.select('SELECT id FROM tokens LIMIT 1')).length > 0) return undefined
    const { id, token } = makeToken(firstTokenId)
    keep(token)
    return (await this.#insert(id, token, { name: 'first' })) === 1 ? token : undefined
  }

  /** Inserts a token in one statement, which engines serialize: of two with the same name, the second fails. */
  #insert(id: string, token: string, { name, expiresAt = null, ...options }: NewToken): Promise<number> {
    return this.#sql.execute(
      `INSERT INTO tokens (id, name, hash, scopes, created_at, expires_at)
        SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT),
          CAST($6 AS BIGINT)
        WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE name = $2 AND ${isValid('$5')})
        ON CONFLICT (id) DO NOTHING`,
      [id, name, hashToken(token), (options.scopes ?? scopes).join(' '), this.#now(), expiresAt],
    )
  }

  /**
   * Issues a token with the name, scopes and lifetime of `former`, which then expires after `overlapMs`, or at its own
   * time if that is sooner: both are valid meanwhile, so that clients can change over one by one. Rejects with
   * StoreRefused when `former` is no longer valid, or was rotated before.
   */
  async rotate({ id: formerId, name, createdAt, expiresAt: formerEnd }: Token, overlapMs: number) {
    const now = this.#now()
    const { id, token } = makeToken()
    const [given] = await this.#sql.select(latest, [name, createdAt])
    const { created_at, expires_at } = given as Row
    const expiresAt = expires_at === null ? null : now + Number(expires_at) - Number(created_at)
    const formerExpiresAt = Math.min(now + overlapMs, formerEnd ?? Number.POSITIVE_INFINITY)
    // The successor must be newer, even if the clock was set back.
    const newerAt = Math.max(now, createdAt + 1)
    const values = [id, hashToken(token), expiresAt, formerId, now, formerExpiresAt, newerAt]
    if ((await this.#sql.execute(exchange, values)) === 2) return { id, token, expiresAt, formerExpiresAt }
    throw new StoreRefused(
      `token ${formerId} cannot be rotated: it is not valid any more, or it ends already and a newer token named "${name}" is valid (plant-store token list)`,
    )
  }

  /** Finds tokens by their ids. */
  async find(ids: string[]): Promise<Map<string, Token>> {
    const places = ids.map((_, index) => `$${index + 1}`)
    const found = await this.#select(`id IN (${places})`, ids)
    return new Map(found.map((token) => [token.id, token]))
  }

  /** Finds the valid tokens with a name, and the token with that id. */
  findNamed(text: string): Promise<Token[]> {
    return this.#select(`id = $1 OR name = $1 AND ${isValid('$2')}`, [text, this.#now()])
  }

  async #select(where: string, values: (string | number)[]): Promise<Token[]> {
    const text = `SELECT ${tokenColumns} FROM tokens WHERE ${where} ORDER BY created_at, id`
    return (await this.#sql.select(text, values)).map(toToken)
  }

  /** Number of tokens that are neither revoked nor expired. */
  async countValid(): Promise<number> {
    const text = `SELECT count(*) AS valid FROM tokens WHERE ${isValid('$1')}`
    const [row] = await this.#sql.select(text, [this.#now()])
    return Number(row?.valid)
  }

  /** Revokes a token; false when it does not exist or is already revoked. */
  async revoke(id: string): Promise<boolean> {
    const text = 'UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'
    return (await this.#sql.execute(text, [id, this.#now()])) === 1
  }

  /** Notes the use of a token, at most once per minute. */
  async touch(id: string): Promise<void> {
    const now = this.#now()
    await this.#sql.execute(
      'UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at, 0) <= $3',
      [id, now, now - touchMs],
    )
  }
}

/** Makes a token of a row of `tokenColumns`. */
export function toToken(row: Row): Token {
  return {
    id: String(row.id),
    name: String(row.name),
    hash: String(row.hash),
    scopes: String(row.scopes).split(' ') as Scope[],
    createdAt: Number(row.created_at),
    expiresAt: row.expires_at as number | null,
    lastUsedAt: row.last_used_at as number | null,
    revokedAt: row.revoked_at as number | null,
  }
}
