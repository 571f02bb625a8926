// Reads the log: a look is one query for its head, the marks that are asked for, and whether the server can be believed; a
// page is one for its text.
import type { Head, Positions } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import { isBacked, refuseAlone, type Session } from './session.ts'
import { backedMs } from './time-outs.ts'

/** The most heads and marks that are kept to find out later how much of the log is the same. */
const maxSeen = 1000

/** Makes the query. In two statements, a head and the marks below it could be of two logs. */
const makeQuery = (isBacked: string) => `
  SELECT coalesce(position, 0) AS position, coalesce(mark, '') AS mark, ${isBacked} AS is_backed,
    (SELECT json_object_agg(position, mark) FROM plants WHERE position = ANY($1::bigint[])) AS marks
  FROM (SELECT) AS one LEFT JOIN (SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1) AS last ON true`

/** To ask for standbys costs a quarter of a look. */
const asking = { name: 'look-backed', text: makeQuery(isBacked) }
const trusting = { name: 'look', text: makeQuery('true') }

type Row = { position: number; mark: string; is_backed: boolean; marks: Record<number, string> | null }

/** Reads the head. Rejects if the query asks for standbys and the server may have been deposed. */
export async function look(session: Session, positions: readonly number[], query = trusting): Promise<Head> {
  const { rows } = await session.query<Row>({ ...query, values: [`{${positions}}`] })
  const { position, mark, is_backed, marks } = rows[0] as Row
  refuseAlone(is_backed)
  const found: Record<number, string> = { ...marks, [position]: mark, 0: '' }
  return { position, mark, markOf: (asked) => found[asked] }
}

/**
 * Makes a function that reads the head. `lost` is called if plants that it has seen are no longer in the log: those
 * behind the last position that is known to be the same.
 */
export function makeLook(lost: (loss: Positions) => void) {
  const seen = new Map<number, string>()
  let known = { position: 0, mark: '' }
  /** The session whose server had standbys, and until when that is believed. */
  let backed: { session?: Session; untilMs: number } = { untilMs: 0 }

  function note(head: Head, asked: readonly number[]): void {
    known = head
    for (const position of [...asked, head.position]) {
      const mark = head.markOf(position)
      if (mark !== undefined) seen.set(position, mark)
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= maxSeen) break
      seen.delete(oldest)
    }
  }

  /** Compares all that was seen with the log as it is now, and forgets what has changed. */
  async function findAgreed(session: Session): Promise<number> {
    const now = await look(session, [...seen.keys()])
    const changed = [...seen.keys()].filter((position) => now.markOf(position) !== seen.get(position))
    for (const position of changed) seen.delete(position)
    // A log that is only shorter is the same up to its end.
    return now.position < Math.min(known.position, ...changed) ? now.position : Math.max(0, ...seen.keys())
  }

  return async (session: Session, positions: readonly number[]): Promise<Head> => {
    const before = known
    const nowMs = performance.now()
    const query = backed.session === session && nowMs < backed.untilMs ? trusting : asking
    const head = await look(session, [...positions, before.position], query)
    if (query === asking) backed = { session, untilMs: nowMs + backedMs }
    if (head.markOf(before.position) !== before.mark && known === before) {
      const after = await findAgreed(session)
      // Another look may have found it meanwhile.
      if (known === before) lost({ after, last: before.position })
    }
    note(head, positions)
    return head
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
export async function readPage(session: Session, after: number, last: number, mark: string): Promise<string> {
  const { rows } = await session.query<Page>({ ...page, values: [after, last] })
  const { text, count, mark: found } = rows[0] as Page
  if (count === last - after && found === mark) return text
  const missing = `plants ${after + 1} to ${last} with the mark ${mark}`
  throw new StoreUnavailable('unread', `${session.server} does not hold ${missing}`)
}
