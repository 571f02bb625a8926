// Reads the log. One query (a look) reads the head, the marks that are asked for, and whether the server can be
// trusted; another reads the text of a page.
import type { Head } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import { isBacked, refuseAlone, type Session } from './session.ts'

/** Makes the query. It is one statement, because the head and the marks of two could come from different logs. */
const makeQuery = (isBacked: string) => `
  SELECT coalesce(position, 0) AS position, coalesce(mark, '') AS mark, ${isBacked} AS is_backed,
    (SELECT json_object_agg(position, mark) FROM plants WHERE position = ANY($1::bigint[])) AS marks
  FROM (SELECT) AS one LEFT JOIN (SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1) AS last ON true`

export const asking = { name: 'look', text: makeQuery(isBacked) }
/** For a server whose standbys do not matter. */
export const trusting = { name: 'look-trusting', text: makeQuery('true') }

type Row = { position: number; mark: string; is_backed: boolean; marks: Record<number, string> | null }

/**
 * Makes a function that reads the head by a query. It rejects if that asks for standbys and the server may have been
 * deposed. `lost` is called when the last plant that it has seen is no longer in the log.
 */
export function makeLook(query: typeof asking, lost: (positions: { seen: number; now: number }) => void) {
  let last = { position: 0, mark: '' }
  return async (session: Session, positions: readonly number[]): Promise<Head> => {
    const before = last
    const values = [`{${[...positions, before.position]}}`]
    const { rows } = await session.query<Row>({ ...query, values })
    const { position, mark, is_backed, marks } = rows[0] as Row
    refuseAlone(is_backed)
    const found: Record<number, string> = { ...marks, [position]: mark, 0: '' }
    // Another look may have found the loss meanwhile.
    if (last === before && found[before.position] !== before.mark)
      lost({ seen: before.position, now: position })
    last = { position, mark }
    return { position, mark, markOf: (asked) => found[asked] }
  }
}

const page = {
  name: 'page',
  text: `
    SELECT '[' || coalesce(string_agg(item, ',' ORDER BY position), '') || ']' AS text, count(*) AS count,
      coalesce((SELECT mark FROM plants WHERE position = $2), '') AS mark
    FROM plants WHERE position > $1 AND position <= $2`,
}
type Page = { text: string; count: number; mark: string }

/** Reads a range. Rejects with StoreUnavailable unless the log of this server holds all of it, with this last mark. */
export async function readPage(session: Session, after: number, last: number, mark: string): Promise<Buffer> {
  const { rows } = await session.query<Page>({ ...page, values: [after, last] })
  const { text, count, mark: found } = rows[0] as Page
  if (count === last - after && found === mark) return Buffer.from(text)
  const missing = `plants ${after + 1} to ${last} with the mark ${mark}`
  throw new StoreUnavailable('unread', `${session.server} does not hold ${missing}`)
}
