// What both engines do in the same way in SQL: all of a store except its log, its status, and opening and closing.
import type { CopyTarget, NoteChange, Store, StoredPlant } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Dialect, Sql, SqlStore, Value } from './sql.ts'
import { makeTokens, putToken } from './sql-tokens.ts'

type Shared = Required<
  Pick<SqlStore, 'sql' | 'tokens' | 'notes' | 'plants' | 'join' | 'find' | 'checks' | 'copy'>
>

/** `adopted`: called with the id of another store that this one has taken over. */
export function makeSqlStore(sql: Sql, dialect: Dialect, adopted = (_id: string) => {}): Shared {
  const { select, execute } = sql
  return {
    sql,
    tokens: makeTokens(sql),
    notes: {
      async read(prefix) {
        const text = "SELECT key, value FROM meta WHERE key LIKE $1 || '%'"
        return new Map((await select(text, [prefix])).map(({ key, value }) => [String(key), String(value)]))
      },
      change: async (change) => (await execute(...writeNote(change))) === 1,
    },
    async plants({ after, last }, most) {
      const text = `SELECT position, id, item, mark, checksum FROM plants
        WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3`
      return (await select(text, [after, last, most])) as StoredPlant[]
    },
    join: makeJoin(sql, dialect),
    async find(ids) {
      // PostgreSQL refuses an empty list; NULL equals no id.
      const rows = await select(`SELECT id, item FROM plants WHERE id IN (${['NULL', ...ids]})`)
      return new Map(rows.map(({ id, item }) => [Number(id), String(item)]))
    },
    checks: makeChecks(sql, dialect),
    copy: makeCopy(sql, dialect, adopted),
  }
}

/** The statement that changes a note. It changes one row, or none if the value is not `before`. */
export function writeNote({ key, before, value }: NoteChange): [text: string, values: string[]] {
  if (value === '') return ['DELETE FROM meta WHERE key = $1 AND value = $2', [key, before]]
  if (before === '') return ['INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [key, value]]
  return ['UPDATE meta SET value = $2 WHERE key = $1 AND value = $3', [key, value, before]]
}

/** SQL that adds the id to an item, whose last member is a string: its text ends with exactly one brace. */
const itemWithId = `CASE WHEN id IS NULL THEN item ELSE rtrim(item, '}') || ',"id":' || id || '}' END`

function makeJoin({ select }: Sql, dialect: Dialect): Store['join'] {
  const makeText = (item: string) => {
    const joined = dialect.blob(`coalesce(${dialect.join(item, '$3')}, '')`)
    return `SELECT count(*) AS count, ${joined} AS text FROM plants WHERE position > $1 AND position <= $2`
  }
  const [plain, full] = [makeText('item'), makeText(itemWithId)]
  return async ({ after, last }, separator, withId = false) => {
    const [row] = await select(withId ? full : plain, [after, last, separator])
    const { count, text } = row as unknown as { count: number; text: string | Uint8Array }
    if (typeof text === 'string') return { count, text: Buffer.from(text) }
    return { count, text: Buffer.from(text.buffer, text.byteOffset, text.byteLength) }
  }
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
  const own = integrity && (async () => (await select(integrity)).flatMap((row) => readReport(row)))
  return {
    ...(own && { 'the file': own }),
    'the schema': find(schemaFaults),
    'the beginning of the log': find(early),
    'the ids': find(doubles),
  }
}

/** Reads a row of the database's own check, which may have several lines, below the name of the database. */
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

function makeCopy({ execute }: Sql, { putPlants }: Dialect, adopted: (id: string) => void): CopyTarget {
  return {
    async adopt(id) {
      const isAdopted = (await execute(adopt, [id])) === 1
      if (isAdopted) adopted(id)
      return isAdopted
    },
    async put(plants) {
      const [first] = plants
      if (first === undefined) return
      const added = await execute(putPlants, [JSON.stringify(plants), first.position - 1])
      if (added !== plants.length)
        throw new StoreUnavailable('nothing-added', `the log does not end at ${first.position - 1}`)
    },
    putToken: (token) => putToken(execute, token),
  }
}
