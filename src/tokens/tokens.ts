// The tokens in the database: issued, listed, revoked, looked up. What is kept of a token is its SHA-256.
import { hash } from 'node:crypto'
import type { Row, Sql } from '../store/store.ts'
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

/** How exactly the last use of a token is known. */
export const touchMs = 60_000

/** The first token of a store has a known id, so that of many replicas starting at once one makes it. */
const firstTokenId = '00000000'

const columns = 'id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at'

export class Tokens {
  readonly #sql: Sql
  readonly #now: () => number

  constructor(sql: Sql, now: () => number = Date.now) {
    this.#sql = sql
    this.#now = now
  }

  /** Makes a token and returns its text, which is known to nobody afterwards. */
  async create(options: NewToken): Promise<string> {
    const { id, token } = makeToken()
    await this.#insert(id, token, options)
    return token
  }

  /** Makes the token `first` in a store that never had one; undefined when it has. */
  async createFirst(): Promise<string | undefined> {
    if ((await this.#sql.select('SELECT id FROM tokens LIMIT 1')).length > 0) return undefined
    const { id, token } = makeToken(firstTokenId)
    return (await this.#insert(id, token, { name: 'first' })) === 1 ? token : undefined
  }

  #insert(id: string, token: string, options: NewToken): Promise<number> {
    return this.#sql.execute(
      `INSERT INTO tokens (${columns}) VALUES ($1, $2, $3, $4, $5, $6, NULL, NULL) ON CONFLICT (id) DO NOTHING`,
      [
        id,
        options.name,
        hashToken(token),
        (options.scopes ?? scopes).join(' '),
        this.#now(),
        options.expiresAt ?? null,
      ],
    )
  }

  /** The tokens that there are under some ids. */
  async find(ids: string[]): Promise<Map<string, Token>> {
    const places = ids.map((_, index) => `$${index + 1}`)
    const rows = await this.#sql.select(`SELECT ${columns} FROM tokens WHERE id IN (${places})`, ids)
    return new Map(rows.map((row) => [String(row.id), toToken(row)]))
  }

  async list(): Promise<Token[]> {
    return (await this.#sql.select(`SELECT ${columns} FROM tokens ORDER BY created_at, id`)).map(toToken)
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

function toToken(row: Row): Token {
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
