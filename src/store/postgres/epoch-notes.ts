// The epochs of a log in PostgreSQL. Each has the origin of its history: the first batch of a connection with another
// origin begins a new epoch, in the same transaction.
import type { QueryConfig } from 'pg'
import { type Epoch, Epochs, latestEpoch, makeEpoch } from '../epochs.ts'
import type { Head } from '../store.ts'
import type { Session } from './session.ts'

/** Subquery for the last position of the log. */
export const lastPosition = '(SELECT coalesce(max(position), 0) FROM plants)'

/** Reads the head of the log, with the epochs only when there is a new one. */
export class HeadReader {
  #epochs = new Epochs([])

  async look(session: Session): Promise<Head> {
    const text = `SELECT ${lastPosition} AS position, ${latestEpoch} AS latest`
    const { rows } = await session.query({ name: 'head', text })
    const { position, latest } = rows[0]
    if (latest === this.#epochs.latest) return { position, epochs: this.#epochs }
    return this.#reload(session)
  }

  /** Reads head and epochs in one statement: from two moments, positions could get wrong owners. */
  async #reload(session: Session): Promise<Head> {
    const { rows } = await session.query(`
      SELECT ${lastPosition} AS position, (
        SELECT json_agg(json_build_object('epoch', epoch, 'start', start) ORDER BY number) FROM epochs) AS epochs`)
    const { position, epochs } = rows[0] as { position: number; epochs: Epoch[] }
    this.#epochs = new Epochs(epochs)
    return { position, epochs: this.#epochs }
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
