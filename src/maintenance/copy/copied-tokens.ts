// Copies the tokens of a store: valid tokens stay valid, and revoked ones stay revoked.
import { type Row, type Sql, StoreRefused } from '../../store/store.ts'
import { selectRows } from '../../store/view.ts'
import { tokenColumns } from '../../tokens/tokens.ts'
import type { Source } from './source.ts'

/** Throws StoreRefused when the target holds a token that the source lacks. */
export async function checkTokens(source: Source, target: Sql): Promise<void> {
  const hashes = new Set((await readAll(source)).map(({ hash }) => hash))
  const other = (await readTokens(target)).find(({ hash }) => !hashes.has(String(hash)))
  if (other) throw new StoreRefused(`--to holds the token ${other.id}, which is not of --from`)
}

/** Inserts or updates all tokens of the source in the target; resolves to their number. */
export async function copyTokens(source: Source, target: Sql): Promise<number> {
  await checkTokens(source, target)
  const tokens = await readAll(source)
  for (const token of tokens) {
    const columns = Object.keys(token)
    const places = columns.map((_, index) => `$${index + 1}`)
    // Only these columns of a token ever change. Revoked in either store means revoked; the earlier expiry wins.
    const text = `INSERT INTO tokens (${columns}) VALUES (${places}) ON CONFLICT (id) DO UPDATE SET
      last_used_at = excluded.last_used_at, revoked_at = coalesce(tokens.revoked_at, excluded.revoked_at),
      expires_at = CASE WHEN tokens.expires_at IS NULL OR excluded.expires_at < tokens.expires_at
        THEN excluded.expires_at ELSE tokens.expires_at END`
    await target.execute(text, Object.values(token))
  }
  return tokens.length
}

function readAll({ view }: Source): Promise<Row[]> {
  return selectRows(view, tokenColumns, 'FROM tokens ORDER BY id')
}

function readTokens(sql: Sql): Promise<Row[]> {
  return sql.select('SELECT * FROM tokens ORDER BY id')
}
