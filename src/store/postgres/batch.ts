// A batch of plants: the look-up of their ids, their outcomes, and the statement that adds them.
import type { QueryConfig } from 'pg'
import type { Entry, Outcome } from '../engine.ts'
import { checksumOf } from '../sql/checksum.ts'
import type { Session } from './session.ts'

/** Finds the items in the log with these ids. */
export async function findItems(session: Session, ids: number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map()
  const text = 'SELECT id, item FROM plants WHERE id = ANY($1) AND id IS NOT NULL'
  const query = { name: 'known', text, values: [toArray(ids)] }
  const { rows } = await session.query<{ id: number; item: string }>(query)
  return new Map(rows.map(({ id, item }) => [id, item]))
}

/** Decides the outcomes of the entries, in order; adds new ids to `known`. */
export function judge(entries: Entry[], known: Map<number, string>): { outcomes: Outcome[]; added: Entry[] } {
  const added: Entry[] = []
  const outcomes = entries.map(({ id, item }): Outcome => {
    const found = id === undefined ? undefined : known.get(id)
    if (found !== undefined) return found === item ? 'replayed' : 'conflict'
    if (id !== undefined) known.set(id, item)
    added.push({ id, item })
    return 'added'
  })
  return { outcomes, added }
}

/** Makes the query that inserts entries behind `position`. */
export function insertPlants(position: number, entries: Entry[], mark: string): QueryConfig {
  const text = `
    INSERT INTO plants (position, id, item, mark, checksum) SELECT $1::bigint + n, id, item, $4, checksum
    FROM unnest($2::bigint[], string_to_array($3, chr(10)), $5::bigint[]) WITH ORDINALITY
      AS added (id, item, checksum, n)`
  const ids = toArray(entries.map(({ id }) => id ?? 'NULL'))
  // Our JSON holds no line feed. Quoting each item for an array would take longer than all the rest.
  const items = entries.map(({ item }) => item).join('\n')
  const checksums = entries.map(({ id = null, item }, n) =>
    checksumOf({ position: position + 1 + n, id, item, mark }),
  )
  return { name: 'insert', text, values: [position, ids, items, mark, toArray(checksums)] }
}

/** Formats an array for PostgreSQL. */
function toArray(values: (number | 'NULL')[]): string {
  return `{${values.join()}}`
}
