// The SQL shared by both engines: everything but the log, the status, opening and closing.
import type { StoredPlant } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Checks, Sql, SqlStore } from './sql.ts'
import { makeTokens } from './sql-tokens.ts'

type Shared = Omit<SqlStore, 'id' | 'log' | 'status' | 'close'>

/** `checks`: of this engine. `onAdopt`: called with the id that was taken over from another store. */
export function makeSqlStore(sql: Sql, checks: Checks, onAdopt = (_id: string) => {}): Shared {
  const { select, execute } = sql
  const makeCheck = (text: string) => async () => (await select(text)).map(({ fault }) => String(fault))
  const queries = Object.entries({ ...checks, ...sharedChecks })
  return {
    sql,
    tokens: makeTokens(sql),
    async notes() {
      const rows = await select("SELECT key, value FROM meta WHERE key LIKE 'import/%'")
      return new Map(rows.map(({ key, value }) => [String(key), String(value)]))
    },
    async plants(after, last, most) {
      const text = `SELECT position, id, item, mark, checksum FROM plants
        WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3`
      return (await select(text, [after, last, most])) as StoredPlant[]
    },
    async find(ids) {
      // Numbers, which need no escaping. PostgreSQL refuses an empty list; NULL equals no id.
      const rows = await select(`SELECT id, item FROM plants WHERE id IN (${['NULL', ...ids]})`)
      return new Map(rows.map(({ id, item }) => [Number(id), String(item)]))
    },
    checks: Object.fromEntries(queries.map(([part, text]) => [part, makeCheck(text)])),
    async adopt(id) {
      const isAdopted = (await execute(adopt, [id])) === 1
      if (isAdopted) onAdopt(id)
      return isAdopted
    },
    async put(plants) {
      const before = (plants[0] as StoredPlant).position - 1
      // As an object, because json_each of PostgreSQL does not accept arrays.
      if ((await execute(put, [JSON.stringify({ ...plants }), before])) !== plants.length)
        throw new StoreUnavailable('nothing-added', `another program writes to --to after plant ${before}`)
    },
  }
}

const sharedChecks: Checks = {
  'the beginning of the log': `
    SELECT 'plant ' || position || ' is before the first position' AS fault
    FROM plants WHERE position < 1 ORDER BY position LIMIT 1`,
  'the ids': `
    SELECT 'plant ' || max(position) || ' has the id ' || id || ', which another plant also has' AS fault
    FROM plants WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1 ORDER BY max(position) LIMIT 10`,
}

/** Also updates an equal id: on PostgreSQL the row lock waits for the last COMMIT of a copy that was killed. */
const adopt = `
  UPDATE meta SET value = $1 WHERE key = 'store' AND
    (value = $1 OR NOT EXISTS (SELECT 1 FROM plants) AND NOT EXISTS (SELECT 1 FROM tokens))`

/** Adds the rows in a JSON object unchanged, if the log ends directly before the first. */
const put = `
  INSERT INTO plants (position, id, item, mark, checksum) SELECT CAST(value ->> 'position' AS BIGINT),
    CAST(value ->> 'id' AS BIGINT), value ->> 'item', value ->> 'mark', CAST(value ->> 'checksum' AS BIGINT)
  FROM json_each($1) WHERE (SELECT coalesce(max(position), 0) FROM plants) = $2`
