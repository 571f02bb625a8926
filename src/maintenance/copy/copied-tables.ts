// Copies what a store holds beside its plants, so that tokens, ETags and cursors stay valid.
import { epochsVersion } from '../../store/format/migrations.ts'
import { type Row, type Sql, StoreRefused } from '../../store/store.ts'
import { tokenColumns } from '../../store/token-notes.ts'
import { type StoreView, selectRows } from '../../store/view.ts'
import { noteKeys } from '../import/notes.ts'

/** Throws StoreRefused when the target holds a token that the source lacks. */
export async function checkTokens(source: StoreView, target: Sql): Promise<void> {
  const hashes = new Set((await readTokens(source)).map(({ hash }) => hash))
  const found = await target.select('SELECT id, hash FROM tokens ORDER BY id')
  const other = found.find(({ hash }) => !hashes.has(hash as string))
  if (other) throw new StoreRefused(`--to holds the token ${other.id}, which is not of --from`)
}

/**
 * Inserts or updates all tokens of the source in the target; resolves to their number. Throws StoreRefused when the
 * target has got another token meanwhile: the first one of each store has the same id.
 */
export async function copyTokens(source: StoreView, target: Sql): Promise<number> {
  await checkTokens(source, target)
  const tokens = await readTokens(source)
  // Only these columns of a token ever change. Revoked in either store means revoked; the earlier expiry wins.
  const update = `
    last_used_at = excluded.last_used_at, revoked_at = coalesce(tokens.revoked_at, excluded.revoked_at),
    expires_at = CASE WHEN tokens.expires_at IS NULL OR excluded.expires_at < tokens.expires_at
      THEN excluded.expires_at ELSE tokens.expires_at END`
  for (const token of tokens) await putRow(target, 'tokens', token, `(id) DO UPDATE SET ${update}`)
  return tokens.length
}

function readTokens(source: StoreView): Promise<Row[]> {
  return selectRows(source, tokenColumns, 'FROM tokens ORDER BY id')
}

/**
 * Replaces the epochs of the target, including those begun by writing to it, so this comes last. `plants`: the number
 * in both stores; epochs with a later start are left out. Without epochs in the source, the target keeps its own.
 */
export async function copyEpochs(source: StoreView, target: Sql, plants: number): Promise<void> {
  if (source.version < epochsVersion) return
  const rest = 'FROM epochs WHERE start <= $1 ORDER BY number'
  const epochs = await selectRows(source, ['number', 'epoch', 'start'], rest, [plants])
  const last = epochs.at(-1)
  if (last === undefined) return
  // An engine's own notes on epochs (PostgreSQL: their origin) mean nothing elsewhere.
  const [own = {}] = await target.select('SELECT * FROM epochs LIMIT 1')
  const notes: Row = 'origin' in own ? { origin: '' } : {}
  for (const epoch of epochs) {
    const row = { ...epoch, ...notes }
    const update = Object.keys(row).map((name) => `${name} = excluded.${name}`)
    await putRow(target, 'epochs', row, `(number) DO UPDATE SET ${update}`)
  }
  await target.execute('DELETE FROM epochs WHERE number > $1', [Number(last.number)])
}

/** Reads the progress of imports, of the same moment as the head of the log. */
export async function readProgress(source: StoreView): Promise<{ head: number; progress: Row[] }> {
  const head = '(SELECT coalesce(max(position), 0) FROM plants)'
  const rows = await source.select<[number, string, string]>(
    `SELECT ${head}, '', '' UNION ALL SELECT 0, key, value FROM meta WHERE key LIKE $1`,
    [noteKeys],
  )
  const [[last] = [0], ...notes] = rows.toSorted(([a], [b]) => b - a)
  return { head: last, progress: notes.map(([, key, value]) => ({ key, value })) }
}

/** Replaces the progress of imports. */
export async function copyProgress(progress: Row[], target: Sql): Promise<void> {
  for (const note of progress)
    await putRow(target, 'meta', note, '(key) DO UPDATE SET value = excluded.value')
}

/** Inserts a row; `conflict` says what becomes of one with the same key. */
async function putRow(target: Sql, table: string, row: Row, conflict: string): Promise<void> {
  const columns = Object.keys(row)
  const places = columns.map((_, index) => `$${index + 1}`)
  const text = `INSERT INTO ${table} (${columns}) VALUES (${places}) ON CONFLICT ${conflict}`
  await target.execute(text, Object.values(row))
}
