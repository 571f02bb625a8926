// The epochs of one store, put into another: positions have the same owners there, so ETags and cursors stay valid.
import { epochsVersion } from '../../store/format/migrations.ts'
import type { Row, Sql } from '../../store/store.ts'
import { selectRows } from '../../store/view.ts'
import type { Source } from './source.ts'

/**
 * Those that the target began while it was written to are replaced, so this comes last. `plants`: how many both stores
 * hold; what the source has begun since is not for them. A source without
 * epochs leaves the target its own.
 */
export async function copyEpochs({ view }: Source, target: Sql, plants: number): Promise<void> {
  if (view.version < epochsVersion) return
  const rest = 'FROM epochs WHERE start <= $1 ORDER BY number'
  const epochs = await selectRows(view, ['number', 'epoch', 'start'], rest, [plants])
  if (epochs.length === 0) return
  const hasOrigin = 'origin' in (await readFirst(target))
  for (const epoch of epochs) {
    // An engine's own notes on epochs (PostgreSQL: their origin) do not hold elsewhere.
    const row: Row = { ...epoch, ...(hasOrigin && { origin: '' }) }
    const names = Object.keys(row)
    const places = names.map((_, index) => `$${index + 1}`)
    const updates = names.slice(1).map((name) => `${name} = excluded.${name}`)
    const text = `INSERT INTO epochs (${names}) VALUES (${places}) ON CONFLICT (number) DO UPDATE SET ${updates}`
    await target.execute(text, Object.values(row))
  }
  await target.execute('DELETE FROM epochs WHERE number > $1', [(epochs.at(-1) as Row).number as number])
}

async function readFirst(sql: Sql): Promise<Row> {
  const [row = {}] = await sql.select('SELECT * FROM epochs LIMIT 1')
  return row
}
