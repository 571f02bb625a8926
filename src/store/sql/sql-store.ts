// What both engines do in the same way in SQL: all of a store except its log, its status, and opening and closing.
import type { NoteChange, Store, StoredPlant } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Dialect, Sql, SqlStore, Value } from './sql.ts'
import { makeTokens } from './sql-tokens.ts'

type Shared = Omit<SqlStore, 'id' | 'log' | 'status' | 'close'>

/** `adopted`: called with the id of another store that this one has taken over. */
export function makeSqlStore(sql: Sql, dialect: Dialect, adopted = (_id: string) => {}): Shared {
  const { select, execute } = sql
  return {
    sql,
    tokens: makeTokens(sql),
    async notes(prefix) {
      const text = "SELECT key, value FROM meta WHERE key LIKE $1 || '%'"
      return new Map((await select(text, [prefix])).map(({ key, value }) => [String(key), String(value)]))
    },
    async plants(after, last, most) {
      const text = `SELECT position, id, item, mark, checksum FROM plants
        WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3`
      return (await select(text, [after, last, most])) as StoredPlant[]
    },
    async find(ids) {
      // PostgreSQL refuses an empty list; NULL equals no id.
      const rows = await select(`SELECT id, item FROM plants WHERE id IN (${['NULL', ...ids]})`)
      return new Map(rows.map(({ id, item }) => [Number(id), String(item)]))
    },
    checks: makeChecks(sql, dialect),
    async adopt(id) {
      const isAdopted = (await execute(adopt, [id])) === 1
      if (isAdopted) adopted(id)
      return isAdopted
    },
    async put(plants) {
      const before = (plants[0] as StoredPlant).position - 1
      const text = `${put} FROM ${dialect.elements}($1) WHERE (SELECT coalesce(max(position), 0) FROM plants) = $2`
      if ((await execute(text, [JSON.stringify(plants), before])) !== plants.length)
        throw new StoreUnavailable('nothing-added', `the log does not end at ${before}`)
    },
  }
}

/** The statement that changes a note. It changes one row, or none if the value is not `before`. */
export function writeNote({ key, before, value }: NoteChange): [text: string, values: string[]] {
  if (before === '') return ['INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [key, value]]
  return ['UPDATE meta SET value = $2 WHERE key = $1 AND value = $3', [key, value, before]]
}

/** Queries for faults. */
const early = `
  SELECT 'plant ' || position || ' is before the first position' AS fault
  FROM plants WHERE position < 1 ORDER BY position LIMIT 1`
const doubles = `
  SELECT 'plant ' || max(position) || ' has the id ' || id || ', which another plant also has' AS fault
  FROM plants WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1 ORDER BY max(position) LIMIT 10`

function makeChecks({ select }: Sql, { schemaFaults, integrity }: Dialect): Store['checks'] {
  const find = (text: string) => async () => (await select(text)).map(({ fault }) => String(fault))
  return {
    ...(integrity && { 'the file': async () => (await select(integrity)).flatMap(readReport) }),
    'the schema': find(schemaFaults),
    'the beginning of the log': find(early),
    'the ids': find(doubles),
  }
}

/** Reads a row of the database's own check: one fault per line, below a heading with the name of the database. */
function readReport(row: Record<string, Value>): string[] {
  return String(Object.values(row)[0])
    .split('\n')
    .filter((line) => line !== 'ok' && !line.startsWith('***'))
    .map((line) => `integrity check: ${line}`)
}

/**
 * Adopts an id. It also runs if the id is the same: on PostgreSQL its row lock then waits for the last COMMIT of a copy
 * that was killed.
 */
const adopt = `
  UPDATE meta SET value = $1 WHERE key = 'store' AND
    (value = $1 OR NOT EXISTS (SELECT 1 FROM plants) AND NOT EXISTS (SELECT 1 FROM tokens))`

/** Adds the plants of a JSON array as they are. */
const put = `
  INSERT INTO plants SELECT CAST(value ->> 'position' AS BIGINT), CAST(value ->> 'id' AS BIGINT), value ->> 'item',
    value ->> 'mark', CAST(value ->> 'checksum' AS BIGINT)`
