// Tokens in SQL. Each change is one statement. Engines serialize all of them except `touch`, so that of two concurrent
// tokens with one name, the second is refused.
import type { Token, TokenTable } from '../engine.ts'
import type { Sql, Value } from './sql.ts'

const columns = 'id,name,hash,scopes,created_at,expires_at,last_used_at,revoked_at'
/** The same columns by the names of a Token. */
const fields = `id, name, hash, scopes, created_at AS "createdAt", expires_at AS "expiresAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"`

/** Condition: the token is valid at a time. */
const isValid = (time: string) => `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${time})`

const insert = `
  INSERT INTO tokens (${columns})
  SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT),
    CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT)
  WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE name = $2 AND ${isValid('$5')})
  ON CONFLICT (id) DO NOTHING`

/** Condition: the token is valid, and has no expiry or no newer valid token with its name. */
const isCurrent = `id = $4 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5 AND NOT EXISTS (
  SELECT 1 FROM tokens AS newer WHERE newer.name = tokens.name AND newer.created_at > tokens.created_at
    AND ${isValid('$5')}))`

/** One statement, so that adding the new token and changing the expiry of the old one are atomic. */
const replace = `
  INSERT INTO tokens (id, name, hash, scopes, created_at, expires_at)
  SELECT id, name, hash, scopes, created_at, expires_at FROM (
    SELECT CAST($1 AS TEXT) AS id, name, CAST($2 AS TEXT) AS hash, scopes,
      CAST($7 AS BIGINT) AS created_at, CAST($3 AS BIGINT) AS expires_at FROM tokens WHERE ${isCurrent}
    UNION ALL
    SELECT id, name, hash, scopes, created_at, CAST($6 AS BIGINT) FROM tokens WHERE ${isCurrent}
  ) AS pair WHERE true
  ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`

const revoke = 'UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'

const touch =
  'UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at BETWEEN $3 AND $2) IS NOT TRUE'

/** Only these columns of a token can change. */
const put = `
  INSERT INTO tokens (${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO UPDATE SET
    last_used_at = excluded.last_used_at, revoked_at = coalesce(tokens.revoked_at, excluded.revoked_at),
    expires_at = CASE WHEN tokens.expires_at IS NULL OR excluded.expires_at < tokens.expires_at
      THEN excluded.expires_at ELSE tokens.expires_at END`

/** Keeps the tokens in the table `tokens`. */
export function makeTokens({ select, execute }: Sql): TokenTable {
  const read = async (where: string, values: Value[] = []): Promise<Token[]> => {
    const rows = await select(`SELECT ${fields} FROM tokens WHERE ${where} ORDER BY created_at, id`, values)
    return rows.map((row) => ({ ...row, scopes: String(row.scopes).split(' ') }) as Token)
  }
  return {
    find: async (id) => (await read('id = $1', [id]))[0],
    all: () => read('true'),
    search: (text, hash = '') => read('id = $1 OR name = $1 OR hash = $2', [text, hash]),
    add: async (token) => (await execute(insert, toValues(token))) === 1,
    async replace(former, { id, hash, createdAt, expiresAt }, at) {
      const values = [id, hash, expiresAt, former.id, at, former.expiresAt, createdAt]
      return (await execute(replace, values)) === 2
    },
    revoke: async (id, at) => (await execute(revoke, [id, at])) === 1,
    touch: async (id, at, since) => void (await execute(touch, [id, at, since], true)),
    put: async (token) => void (await execute(put, toValues(token))),
  }
}

/** The values of `columns`. */
function toValues(token: Token): Value[] {
  const { id, name, hash, scopes, createdAt, expiresAt, lastUsedAt, revokedAt } = token
  return [id, name, hash, scopes.join(' '), createdAt, expiresAt, lastUsedAt, revokedAt]
}
