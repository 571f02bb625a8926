// The tokens in the database: issued, listed, revoked, looked up. What is kept of a token is its SHA-256.
import { hash } from 'node:crypto'
import { type Row, type Sql, StoreRefused } from '../store/store.ts'
import { makeToken } from './format.ts'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** All times are milliseconds since 1970. */
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

/** SHA-256 in hex. */
export function hashToken(token: string | Buffer): string {
  return hash('sha256', token)
}

/** Precision of the last use of a token. */
export const touchMs = 60_000

/** The first token of a store has a known id, so that of many replicas starting at once one makes it. */
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
const columns = tokenColumns.join()

/** The condition for a row to be valid at a time. */
const isValid = (time: string) => `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${time})`

export class Tokens {
  readonly #sql: Sql
  readonly #now: () => number

  constructor(sql: Sql, now: () => number = Date.now) {
    this.#sql = sql
    this.#now = now
  }

  /**
   * Makes a token and returns its text, which is known to nobody afterwards. Rejects with StoreRefused when another valid
   * token has the name.
   */
  async create(options: NewToken): Promise<string> {
    const { id, token } = makeToken()
    if ((await this.#insert(id, token, options)) === 1) return token
    throw new StoreRefused(
      `a valid token is named "${options.name}" already: choose another name, or rotate or revoke that one (plant-store token list)`,
    )
  }

  /**
   * Makes the token `first` in a store that never had one; undefined when it has. `keep` is given the token before it
   * counts.
   */
  async createFirst(keep: (token: string) => void = () => {}): Promise<string | undefined> {
    if ((await this.#sql.select('SELECT id FROM tokens LIMIT 1')).length > 0) return undefined
    const { id, token } = makeToken(firstTokenId)
    keep(token)
    return (await this.#insert(id, token, { name: 'first' })) === 1 ? token : undefined
  }

  /** In one statement, which waits for its turn to write in every engine: of two for one name one comes too late. */
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

  /** The tokens that there are under some ids. */
  async find(ids: string[]): Promise<Map<string, Token>> {
    const places = ids.map((_, index) => `$${index + 1}`)
    const rows = await this.#sql.select(`SELECT ${columns} FROM tokens WHERE id IN (${places})`, ids)
    return new Map(rows.map((row) => [String(row.id), toToken(row)]))
  }

  /** The valid tokens with a name, and the token with this id. */
  async findNamed(text: string): Promise<Token[]> {
    const where = `id = $1 OR name = $1 AND ${isValid('$2')}`
    const rows = await this.#sql.select(
      `SELECT ${columns} FROM tokens WHERE ${where} ORDER BY created_at, id`,
      [text, this.#now()],
    )
    return rows.map(toToken)
  }

  async list(): Promise<Token[]> {
    return (await this.#sql.select(`SELECT ${columns} FROM tokens ORDER BY created_at, id`)).map(toToken)
  }

  /** Number of tokens that are neither revoked nor expired. */
  async countValid(): Promise<number> {
    const text = `SELECT count(*) AS valid FROM tokens WHERE ${isValid('$1')}`
    const [row] = await this.#sql.select(text, [this.#now()])
    return Number(row?.valid)
  }

  /** False when there is no such token, or when it was revoked before. */
  async revoke(id: string): Promise<boolean> {
    const text = 'UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'
    return (await this.#sql.execute(text, [id, this.#now()])) === 1
  }

  /** Notes that a token was used now, when that was not noted in the last minute. */
  async touch(id: string): Promise<void> {
    const now = this.#now()
    await this.#sql.execute(
      'UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at, 0) <= $3',
      [id, now, now - touchMs],
    )
  }
}

/** `row`: of `tokenColumns`. */
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
