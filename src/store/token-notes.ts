// The notes on tokens of the engines with SQL, written once for both.
import type { Row, Sql, StoredToken, TokenNotes, Value } from './store.ts'

export const tokenColumns = 'id,name,hash,scopes,created_at,expires_at,last_used_at,revoked_at'.split(',')

/** Condition for a row to be valid at a time. */
const isValid = (time: string) => `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${time})`

/** Condition for a token that was not rotated before: one that expires has no newer token of its name. */
const isCurrent = `id = $4 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5 AND NOT EXISTS (
  SELECT 1 FROM tokens AS newer WHERE newer.name = tokens.name AND newer.created_at > tokens.created_at
    AND newer.revoked_at IS NULL AND (newer.expires_at IS NULL OR newer.expires_at > $5)))`

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

const insert = `
  INSERT INTO tokens (id, name, hash, scopes, created_at, expires_at)
  SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT),
    CAST($6 AS BIGINT)
  WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE name = $2 AND ${isValid('$5')})
  ON CONFLICT (id) DO NOTHING`

/** Makes the notes of a table. Each of them is written in one statement, and engines serialize these. */
export function makeTokenNotes({ select, execute }: Sql): TokenNotes {
  async function find(where: string, values: Value[], order = 'created_at, id'): Promise<StoredToken[]> {
    return (await select(`SELECT ${tokenColumns} FROM tokens WHERE ${where} ORDER BY ${order}`, values)).map(
      toToken,
    )
  }
  return {
    hasAny: async () => (await select('SELECT id FROM tokens LIMIT 1')).length > 0,
    async add({ id, name, hash, scopes, createdAt, expiresAt }) {
      return (await execute(insert, [id, name, hash, scopes.join(' '), createdAt, expiresAt])) === 1
    },
    async exchange(formerId, endsAt, { id, hash, createdAt, expiresAt }, now) {
      return (await execute(exchange, [id, hash, expiresAt, formerId, now, endsAt, createdAt])) === 2
    },
    find: (ids) => find(`id IN (${ids.map((_, index) => `$${index + 1}`)})`, ids),
    findNamed: (text, now) => find(`id = $1 OR name = $1 AND ${isValid('$2')}`, [text, now]),
    async findLatest(name, since) {
      const [latest] = await find('name = $1 AND created_at >= $2', [name, since], 'created_at DESC LIMIT 1')
      return latest as StoredToken
    },
    async countValid(now) {
      const [row] = await select(`SELECT count(*) AS valid FROM tokens WHERE ${isValid('$1')}`, [now])
      return Number(row?.valid)
    },
    async revoke(id, now) {
      const text = 'UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'
      return (await execute(text, [id, now])) === 1
    },
    async touch(id, now, before) {
      const text = 'UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at, 0) <= $3'
      await execute(text, [id, now, before])
    },
  }
}

/** Makes a token of a row of `tokenColumns`. */
export function toToken({ created_at, expires_at, last_used_at, revoked_at, ...row }: Row): StoredToken {
  const times = {
    createdAt: created_at,
    expiresAt: expires_at,
    lastUsedAt: last_used_at,
    revokedAt: revoked_at,
  }
  return { ...row, ...times, scopes: String(row.scopes).split(' ') } as StoredToken
}
