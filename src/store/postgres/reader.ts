// Reads the log. One query reads the head, the requested marks, and the reason to distrust the server; another reads a
// page.
import type { Head, OpenOptions } from '../engine.ts'
import { findDoubt, type Session } from './session.ts'

/** One statement, because two could read the head and the marks from different logs. */
const query = {
  name: 'read-head',
  text: `
    SELECT coalesce(position, 0) AS position, coalesce(mark, '') AS mark, ${findDoubt} AS doubt,
      (SELECT json_object_agg(position, mark) FROM plants WHERE position = ANY($1::bigint[])) AS marks
    FROM (SELECT) AS one LEFT JOIN (SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1) AS last ON true`,
}
type Row = { position: number; mark: string; doubt: string | null; marks: Record<number, string> | null }

/**
 * Returns a function that reads the head. It rejects if the server may have been deposed. It reports a loss if the last
 * plant that it read is no longer in the log.
 */
export function makeHeadReader({ mode, logger, onLoss }: OpenOptions) {
  let last = { position: 0, mark: '' }
  return async (session: Session, positions: readonly number[]): Promise<Head> => {
    const seen = last
    const startMs = performance.now()
    // Twice, because a barrier in progress may have begun too long ago.
    for (let n = 0; n < 2 && mode !== 'read'; n++) await session.passBarrier(startMs)
    const { rows } = await session.query<Row>({ ...query, values: [`{${[...positions, seen.position]}}`] })
    const { position, mark, doubt, marks } = rows[0] as Row
    // A command that only reads may use a standby, from which no standby streams.
    if (mode !== 'read' && doubt !== null) throw new Error(doubt)
    const found: Record<number, string> = { ...marks, [position]: mark, 0: '' }
    // A concurrent read may have reported the loss.
    if (last === seen && found[seen.position] !== seen.mark) {
      const what = `plant ${seen.position} is missing or different, and the log now ends at ${position}`
      logger.error({ seen: seen.position, now: position }, `the database has lost plants: ${what}`)
      onLoss?.()
    }
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

/** Reads a range; undefined if the log of this server lacks a part of it, or has another mark at its end. */
export async function readPage(session: Session, after: number, last: number, mark: string) {
  const { rows } = await session.query<Page>({ ...page, values: [after, last] })
  const { text, count, mark: found } = rows[0] as Page
  return count === last - after && found === mark ? Buffer.from(text) : undefined
}
