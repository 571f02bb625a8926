// A PostgreSQL database in a read-only session. A URL may name a standby alone, so that an export does not burden the
// primary.
import { attemptMs } from '../../limits.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import type { StoreView } from '../engine.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from '../errors.ts'
import type { Row, Select } from '../sql/sql.ts'
import { makeSqlView } from '../sql/sql-view.ts'
import { explain, fail, mostTelling, ServerFailure } from './failures.ts'
import { splitHosts } from './hosts.ts'
import { postgresDialect } from './postgres-dialect.ts'
import { findStore } from './postgres-schema.ts'
import { readPostgresStatus } from './postgres-status.ts'
import { Session } from './session.ts'

/** Everything is read by an index, in its order; the planner would sort a table that was just filled. */
const settings = `
  SET default_transaction_read_only = on; SET statement_timeout = 0; SET jit = off;
  SET enable_seqscan = off; SET enable_bitmapscan = off`

/** Opens a view. Rejects with StoreRefused. */
export async function openPostgresView(url: string): Promise<StoreView> {
  const session = await connectToAny(splitHosts(url))
  try {
    const found = await findStore(session)
    if (found) return makeView(session, found.version)
    throw new StoreMissing('it holds no plant store')
  } catch (error) {
    session.destroy()
    throw refusal(new ServerFailure(session.server, error as Error))
  }
}

/** Connects to the server that accepts writes, or else to any that answers. */
async function connectToAny(urls: string[]): Promise<Session> {
  const attempts = await Promise.allSettled(urls.map(connect))
  const found = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? attempt.value : []))
  const [chosen, ...others] = found.toSorted((a, b) => Number(a.isStandby) - Number(b.isStandby))
  for (const { session } of others) session.destroy()
  if (chosen) return chosen.session
  throw refusal(mostTelling(attempts.map((attempt) => (attempt as PromiseRejectedResult).reason)))
}

async function connect(url: string): Promise<{ session: Session; isStandby: boolean }> {
  const session = new Session(url, 'plant-store')
  try {
    await withTimeout(session.connect(), attemptMs, fail(`no answer in ${attemptMs} ms`))
    await session.query(settings)
    const text = 'SELECT pg_is_in_recovery() AS standby'
    const { rows } = await session.query<{ standby: boolean }>(text)
    return { session, isStandby: rows[0]?.standby === true }
  } catch (error) {
    session.destroy()
    throw new ServerFailure(session.server, error as Error)
  }
}

function refusal(error: Error): StoreRefused {
  const Refused = error.cause instanceof StoreMissing ? StoreMissing : StoreRefused
  return new Refused(`cannot use the database of DATABASE_URL: ${error.message}`, { cause: error })
}

function makeView(session: Session, version: number): StoreView {
  const select: Select = async (text, values = []) => {
    try {
      return (await session.query<Row>({ text, values })).rows
    } catch (cause) {
      throw new StoreUnavailable('unread', explain(cause as Error), { cause })
    }
  }
  return {
    ...makeSqlView(select, postgresDialect, version),
    readStatus: () => readPostgresStatus(select),
    close: async () => session.destroy(),
  }
}
