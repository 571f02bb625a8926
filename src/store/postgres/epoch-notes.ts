// The epochs of a log in PostgreSQL. Each has the origin of its history: the first batch of a connection with another
// origin begins a new epoch, in the same transaction.
import type { QueryConfig } from 'pg'
import { type Epoch, Epochs, latestEpoch, makeEpoch } from '../epochs.ts'
import type { Head } from '../store.ts'
import type { Session } from './session.ts'

/** Subquery for the last position of the log. */
export const lastPosition = '(SELECT coalesce(max(position), 0) FROM plants)'

/** Query for the head, and for the epochs unless $1 is the latest. In two statements, positions could get wrong owners. */
const head = `
  SELECT position, CASE WHEN latest <> $1 THEN (
    SELECT coalesce(json_agg(json_build_object('epoch', epoch, 'start', start) ORDER BY number), '[]') FROM epochs
  ) END AS epochs
  FROM (SELECT ${lastPosition} AS position, coalesce(${latestEpoch}, '') AS latest) AS head`

/** Makes a function that reads the head, and keeps the epochs that it has read. */
export function makeHeadReader() {
  let known = new Epochs([])
  return async (session: Session): Promise<Head> => {
    const { rows } = await session.query({ name: 'head', text: head, values: [known.latest] })
    const { position, epochs } = rows[0] as { position: number; epochs: Epoch[] | null }
    if (epochs) known = new Epochs(epochs)
    return { position, epochs: known }
  }
}

/** Reads the origin of the latest epoch. */
export async function findOrigin(session: Session): Promise<string | undefined> {
  const text = 'SELECT origin FROM epochs ORDER BY number DESC LIMIT 1'
  const { rows } = await session.query(text)
  return rows[0]?.origin
}

/** Query that begins an epoch after position `start`. The caller holds the lock on the head. */
export function beginEpoch(start: number, origin: string): QueryConfig {
  const text = `INSERT INTO epochs SELECT coalesce(max(number), 0) + 1, $1, $2, $3 FROM epochs`
  return { text, values: [makeEpoch(), start, origin] }
}
