// Copies the epochs of a store, so that positions keep their owners, and ETags and cursors stay valid.
import { epochsVersion } from '../../store/format/migrations.ts'
import type { Row, Sql } from '../../store/store.ts'
import { selectRows } from '../../store/view.ts'
import type { Source } from './source.ts'

/**
 * Replaces the epochs of the target, including those begun by writing to it, so this comes last. `plants`: the number
 * in both stores; epochs with a later start are left out. Without epochs in the source, the target keeps its own.
 */
export async function copyEpochs({ view }: Source, target: Sql, plants: number): Promise<void> {
  if (view.version < epochsVersion) return
  const rest = 'FROM epochs WHERE start <= $1 ORDER BY number'
  const epochs = await selectRows(view, ['number', 'epoch', 'start'], rest, [plants])
  if (epochs.length === 0) return
  const hasOrigin = 'origin' in (await readFirst(target))
  for (const epoch of epochs) {
    // An engine's own notes on epochs (PostgreSQL: their origin) mean nothing elsewhere.
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
