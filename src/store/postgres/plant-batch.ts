// A batch of plants as PostgreSQL takes it: what is known of their ids, what becomes of each, and the statements that add them.
import type { QueryConfig } from 'pg'
import { checksumOf } from '../format/checksum.ts'
import { keepSegment, segmentEnds } from '../format/segments.ts'
import { sameItem } from '../same-item.ts'
import type { Entry, Outcome } from '../store.ts'
import { postgresDialect } from './postgres-dialect.ts'
import type { Session } from './session.ts'

/** The items that are in the log under these ids. */
export async function findItems(session: Session, ids: number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map()
  const text = 'SELECT id, item FROM plants WHERE id = ANY($1) AND id IS NOT NULL'
  const { rows } = await session.query({ name: 'known', text, values: [toArray(ids)] })
  return new Map(rows.map(({ id, item }) => [id, item]))
}

/** Outcomes in the order of the entries; `known` takes in the ids that are added. */
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

/** Puts the entries at the positions after `position`. */
export function insert(position: number, entries: Entry[]): QueryConfig {
  const text = `
    INSERT INTO plants (position, id, item, checksum) SELECT $1::bigint + n, id, item, checksum
    FROM unnest($2::bigint[], string_to_array($3, chr(10)), $4::bigint[]) WITH ORDINALITY
      AS added (id, item, checksum, n)`
  const ids = toArray(entries.map(({ id }) => id ?? 'NULL'))
  // JSON of the service holds no line feed. To quote each item for an array would take longer than all the rest.
  const items = entries.map(({ item }) => item).join('\n')
  const checksums = toArray(entries.map(({ id, item }, n) => checksumOf(position + 1 + n, id, item)))
  return { name: 'insert', text, values: [position, ids, items, checksums] }
}

/** Keeps the segments that are complete with so many plants more. */
export function keepSegments(position: number, count: number): QueryConfig[] {
  return segmentEnds(position, position + count).map((last) => ({
    name: 'segment',
    text: keepSegment(postgresDialect),
    values: [last],
  }))
}

/** An array as PostgreSQL writes it. */
function toArray(values: (number | 'NULL')[]): string {
  return `{${values.join()}}`
}
