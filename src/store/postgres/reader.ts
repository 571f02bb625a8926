// Reads the log: a look is one query for its head, the marks that are asked for, and whether the server can be believed; a
// page is read by COPY.
import type { Head, PlantLog, Positions } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import { isBacked, refuseAlone, type Session } from './session.ts'
import { backedMs } from './time-outs.ts'

/** The most heads and marks that are kept to find out later how much of the log is the same. */
const maxSeen = 1000

/** Makes the query. In two statements, a head and the marks below it could be of two logs. */
const makeQuery = (isBacked: string) => `
  SELECT position, mark, ${isBacked} AS is_backed,
    (SELECT json_object_agg(position, mark) FROM plants WHERE position = ANY($1::bigint[])) AS marks
  FROM (SELECT) AS one LEFT JOIN (SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1) AS last ON true`

type Query = { name: string; text: string }
/** To ask for standbys costs a quarter of a look. */
const asking: Query = { name: 'look-backed', text: makeQuery(isBacked) }
const trusting: Query = { name: 'look', text: makeQuery('true') }

type Row = {
  position: number | null
  mark: string | null
  is_backed: boolean
  marks: Record<string, string> | null
}

/** Reads the head. Rejects if the query asks for standbys and the server may have been deposed. */
export async function look(
  session: Session,
  positions: readonly number[],
  query: Query = trusting,
): Promise<Head> {
  const { rows } = await session.query<Row>({ ...query, values: [`{${positions}}`] })
  const { position, mark, is_backed, marks } = rows[0] as Row
  refuseAlone(is_backed)
  const found = new Map(Object.entries(marks ?? {}))
  if (position !== null) found.set(String(position), String(mark))
  found.set('0', '')
  return { position: position ?? 0, mark: mark ?? '', markOf: (asked) => found.get(String(asked)) }
}

/**
 * Makes a function that reads the head. `lost` is called if plants that it has seen are no longer in the log: those
 * behind the last position that is known to be the same.
 */
export function makeLook(
  lost: (loss: Positions) => void,
): (session: Session, positions: NonNullable<Parameters<PlantLog['head']>[0]>) => Promise<Head> {
  const seen = new Map<number, string>()
  let known: Pick<Head, 'position' | 'mark'> = { position: 0, mark: '' }
  /** The session whose server had standbys, and until when that is believed. */
  let backed: { session?: Session; untilMs: number } = { untilMs: 0 }

  function note({ position, mark, markOf }: Head, asked: readonly number[]): void {
    known = { position, mark }
    for (const one of [...asked, position]) {
      const found = markOf(one)
      if (found !== undefined) seen.set(one, found)
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= maxSeen) break
      seen.delete(oldest)
    }
  }

  /** Compares all that was seen with the log as it is now, and forgets what has changed. */
  async function findAgreed(session: Session): Promise<number> {
    const now = await look(session, [...seen.keys()])
    const [agreed, changed] = [[0], [known.position]]
    for (const [position, mark] of seen) (now.markOf(position) === mark ? agreed : changed).push(position)
    for (const position of changed) seen.delete(position)
    // A log that is only shorter is the same up to its end.
    return now.position < Math.min(...changed) ? now.position : Math.max(...agreed)
  }

  return async (session, positions) => {
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

/** Reads a range. Rejects with StoreUnavailable unless the log of this server holds all of it, with this last mark. */
export async function readPage(session: Session, after: number, last: number, mark: string): Promise<string> {
  const [array, count, found] = (await session.copy(`
    SELECT '[' || coalesce(string_agg(item, ',' ORDER BY position), '') || ']', count(*)::int,
      coalesce((SELECT mark FROM plants WHERE position = ${last}), '')
    FROM plants WHERE position > ${after} AND position <= ${last}`)) as [Buffer, Buffer, Buffer]
  if (count.readInt32BE() === last - after && String(found) === mark) return String(array)
  throw new StoreUnavailable(
    'unread',
    `${session.server} does not hold plants ${after + 1} to ${last} with the mark ${mark}`,
  )
}
