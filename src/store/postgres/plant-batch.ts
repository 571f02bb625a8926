// A batch of plants in PostgreSQL: the look-up of their ids, their outcomes, and the statements that add them.
import type { QueryConfig } from 'pg'
import type { Entry, Outcome } from '../engine.ts'
import { checksumOf } from '../format/checksum.ts'
import { sameItem } from '../format/same-item.ts'
import { keepSegment, segmentEnds } from '../sql/segments.ts'
import { postgresDialect } from './postgres-dialect.ts'
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
  const outcomes = entries.map((entry): Outcome => {
    const item = entry.id === undefined ? undefined : known.get(entry.id)
    if (item !== undefined) return sameItem(item, entry.item) ? 'replayed' : 'conflict'
    if (entry.id !== undefined) known.set(entry.id, entry.item)
    added.push(entry)
    return 'added'
  })
  return { outcomes, added }
}

/** Query that inserts entries after `position`. */
export function insert(position: number, entries: Entry[]): QueryConfig {
  const text = `
    INSERT INTO plants (position, id, item, checksum) SELECT $1::bigint + n, id, item, checksum
    FROM unnest($2::bigint[], string_to_array($3, chr(10)), $4::bigint[]) WITH ORDINALITY
      AS added (id, item, checksum, n)`
  const ids = toArray(entries.map(({ id }) => id ?? 'NULL'))
  // Our JSON holds no line feed. Quoting each item for an array would take longer than all the rest.
  const items = entries.map(({ item }) => item).join('\n')
  const checksums = toArray(entries.map(({ id, item }, n) => checksumOf(position + 1 + n, id, item)))
  return { name: 'insert', text, values: [position, ids, items, checksums] }
}

/** Queries that store the segments completed by `count` plants after `position`. */
export function keepSegments(position: number, count: number): QueryConfig[] {
  const ends = segmentEnds(position, position + count)
  return ends.map((last) => ({ name: 'segment', text: keepSegment(postgresDialect), values: [last] }))
}

/** Formats an array for PostgreSQL. */
function toArray(values: (number | 'NULL')[]): string {
  return `{${values.join()}}`
}
