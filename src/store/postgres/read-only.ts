// A store in a read-only session with one server. Nothing is made or changed.
import { StoreMissing, StoreUnavailable } from '../errors.ts'
import { withTimeout } from '../in-time.ts'
import type { Row, Sql, SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { mostTelling, refuse, ServerFailure } from './failures.ts'
import { postgresDialect } from './postgres-dialect.ts'
import { readStatus } from './postgres-status.ts'
import { look, readPage, trusting } from './reader.ts'
import { Session } from './session.ts'
import { findStore } from './tables.ts'
import { attemptMs } from './time-outs.ts'

/** Opens the store on the server that accepts writes, or on any that answers: a URL may name a standby alone. */
export async function openToRead(urls: string[]): Promise<SqlStore> {
  const attempts = await Promise.allSettled(urls.map(connectToRead))
  const found = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? attempt.value : []))
  const [chosen, ...others] = found.toSorted((a, b) => Number(a.isStandby) - Number(b.isStandby))
  for (const { session } of others) session.destroy()
  if (chosen) return makeReader(chosen)
  throw mostTelling(attempts.map((attempt) => (attempt as PromiseRejectedResult).reason))
}

type Found = { session: Session; id: string; isStandby: boolean }

/** Everything is read by an index, in its order; the planner would sort a table that was just filled. */
const readSettings = `
  SET default_transaction_read_only = on; SET statement_timeout = 0; SET jit = off;
  SET enable_seqscan = off; SET enable_bitmapscan = off`

async function connectToRead(url: string): Promise<Found> {
  const session = new Session(url, 'plant-store')
  try {
    await withTimeout(session.connect(), attemptMs, () => new Error(`no answer in ${attemptMs} ms`))
    await session.query(readSettings)
    const id = await findStore(session)
    if (id === undefined) throw new StoreMissing('it holds no plant store')
    const { rows } = await session.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby')
    return { session, id, isStandby: rows[0]?.standby === true }
  } catch (error) {
    session.destroy()
    throw new ServerFailure(session.server, error as Error)
  }
}

function makeReader({ session, id }: Found): SqlStore {
  const guard = <T>(reading: Promise<T>) =>
    reading.catch((cause) => refuse('unread')(new ServerFailure(session.server, cause)))
  const select: Sql['select'] = async (text, values = []) =>
    (await guard(session.query<Row>({ text, values }))).rows
  const reject = async (): Promise<never> => {
    throw new StoreUnavailable('nothing-added', 'the database is open for reading only')
  }
  return {
    id,
    log: {
      append: reject,
      head: (positions = []) => guard(look(session, positions, trusting)),
      read: (after, last, mark) => guard(readPage(session, after, last, mark)),
    },
    ...makeSqlStore({ select, execute: reject }, postgresDialect),
    ready: reject,
    status: () => readStatus(select),
    close: async () => session.destroy(),
  }
}
