// Reads the items of a log in PostgreSQL as bytes of JSON.
import { segmentPlants } from '../../limits.ts'
import type { Positions } from '../engine.ts'
import { ownerOf } from '../epochs.ts'
import { StoreUnavailable } from '../errors.ts'
import { findSources, type Source } from '../sql/segments.ts'
import { postgresDialect } from './postgres-dialect.ts'
import type { Session } from './session.ts'

const [open, comma, close] = Buffer.from('[,]') as unknown as [number, number, number]

/** Queries for the items of a range: rows of items with their number of plants. */
const selects: Record<Source, (after: number, last: number) => string> = {
  // Rows are not joined: that would take the server longer than reading them.
  segments: (after, last) => `
    SELECT items, ${segmentPlants}, coalesce(${ownerOf(`${last}`)}, '')
    FROM segments WHERE last > ${after} AND last <= ${last} ORDER BY last`,
  plants: (after, last) => `
    SELECT coalesce(${postgresDialect.join('item', "','")}, ''), count(*)::int, coalesce(${ownerOf(`${last}`)}, '')
    FROM plants WHERE position > ${after} AND position <= ${last}`,
}

type Row = [items: Buffer, count: Buffer, owner: Buffer]

/** Reads a range. Rejects with StoreUnavailable when the log of this server does not hold all of it in that epoch. */
export async function readItems(
  session: Session,
  { after, last, epoch }: Positions & { epoch: string },
): Promise<Buffer> {
  let held = ''
  for (const source of findSources(after, last)) {
    const rows = (await session.copy(selects[source](after, last))) as Row[]
    const count = rows.reduce((sum, [, count]) => sum + count.readInt32BE(), 0)
    const owner = String(rows[0]?.[2])
    if (count === last - after && owner === epoch) return joinArray(rows.map(([items]) => items))
    held = `${count} of the ${last - after} plants after ${after}, in epoch ${owner}, not ${epoch}`
  }
  throw new StoreUnavailable('unread', `${session.server} holds ${held}`)
}

function joinArray(texts: Buffer[]): Buffer {
  const length = texts.reduce((sum, text) => sum + 1 + text.length, 1)
  // Not from the pool, whose memory a cached page would keep alive.
  const array = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const text of texts) {
    array[at] = at === 0 ? open : comma
    text.copy(array, at + 1)
    at += 1 + text.length
  }
  array[at] = close
  return array
}
