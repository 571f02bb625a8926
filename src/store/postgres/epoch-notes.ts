// The epochs of a log in PostgreSQL. Each has the origin of its history: the first batch of a connection with another
// origin begins a new epoch, in the same transaction.
import type { QueryConfig } from 'pg'
import { backedMs } from '../../limits.ts'
import type { Head, Positions } from '../engine.ts'
import { type Epoch, Epochs, latestEpoch, makeEpoch } from '../epochs.ts'
import { isBacked, refuseAlone, type Session } from './session.ts'

/** Subquery for the last position of the log. */
export const lastPosition = '(SELECT coalesce(max(position), 0) FROM plants)'

/**
 * Makes the query for the head, and for the epochs unless $1 is the latest. In two statements, positions could get wrong
 * owners. `isBacked`: as SQL.
 */
const findHead = (isBacked: string) => `
  SELECT position, ${isBacked} AS is_backed, CASE WHEN latest <> $1 THEN (
    SELECT coalesce(json_agg(json_build_object('epoch', epoch, 'start', start) ORDER BY number), '[]') FROM epochs
  ) END AS epochs
  FROM (SELECT ${lastPosition} AS position, coalesce(${latestEpoch}, '') AS latest) AS head`

/** To ask for standbys costs a quarter of a look. */
const asking = { name: 'head-backed', text: findHead(isBacked) }
const trusting = { name: 'head', text: findHead('true') }

type HeadRow = { position: number; is_backed: boolean; epochs: Epoch[] | null }

/**
 * Makes a function that reads the head, and keeps the epochs that it has read. `lost` is called when plants that it has
 * seen are in the log no more. Rejects when the server may have been deposed.
 */
export function makeHeadReader(lost: (loss: Positions) => void) {
  let known: Head = { position: 0, epochs: new Epochs([]) }
  /** The session whose server had standbys, and until when that is believed. */
  let backed: { session?: Session; untilMs: number } = { untilMs: 0 }
  return async (session: Session): Promise<Head> => {
    const nowMs = performance.now()
    const query = backed.session === session && nowMs < backed.untilMs ? trusting : asking
    const { rows } = await session.query<HeadRow>({ ...query, values: [known.epochs.latest] })
    const { position, is_backed, epochs } = rows[0] as HeadRow
    refuseAlone(is_backed)
    if (query === asking) backed = { session, untilMs: nowMs + backedMs }
    const seen = known
    known = { position, epochs: epochs ? new Epochs(epochs) : seen.epochs }
    const kept = Math.min(position, known.epochs.agreesUntil(seen.epochs))
    if (kept < seen.position) lost({ after: kept, last: seen.position })
    return known
  }
}

/** Reads the origin of the latest epoch. */
export async function findOrigin(session: Session): Promise<string | undefined> {
  const text = 'SELECT origin FROM epochs ORDER BY number DESC LIMIT 1'
  const { rows } = await session.query<{ origin: string }>(text)
  return rows[0]?.origin
}

/** Query that begins an epoch after position `start`. The caller holds the lock on the head. */
export function beginEpoch(start: number, origin: string): QueryConfig {
  const text = `INSERT INTO epochs SELECT coalesce(max(number), 0) + 1, $1, $2, $3 FROM epochs`
  return { text, values: [makeEpoch(), start, origin] }
}
