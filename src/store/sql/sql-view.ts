// A view of a store whose engine speaks SQL.
import { segmentPlants } from '../../limits.ts'
import type { Damage, StoredPlant, StoreView } from '../engine.ts'
import type { Epoch } from '../epochs.ts'
import { epochsVersion } from '../format/migrations.ts'
import { type Dialect, makeFind, makeReadNotes, type Select } from './sql.ts'
import { readTokens } from './sql-tokens.ts'

/** SQL that adds the id to an item, whose last member is a string: its text ends with exactly one brace. */
const itemWithId = `CASE WHEN id IS NULL THEN item ELSE rtrim(item, '}') || ',"id":' || id || '}' END`

/** Queries for faults: their details, and their positions, if each is of a plant. */
const early =
  "SELECT position, 'is before the first position' AS detail FROM plants WHERE position < 1 ORDER BY 1 LIMIT 1"
const doubles = `
  SELECT max(position) AS position, 'has the id ' || id || ', which another plant has, too' AS detail
  FROM plants WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1 ORDER BY 1 LIMIT 10`
const wrongSegments = ({ join }: Dialect) => `
  SELECT last AS position, 'ends a segment that differs from its plants' AS detail FROM segments
  WHERE last > $1 AND last <= $2 AND items <> coalesce((SELECT ${join('item', "','")} FROM plants
    WHERE position > last - ${segmentPlants} AND position <= last), '')`

/** Makes a view. `select` rejects with StoreUnavailable. */
export function makeSqlView(
  select: Select,
  dialect: Dialect,
  version: number,
): Omit<StoreView, 'readStatus' | 'close'> {
  const isOld = version < epochsVersion
  const readOne = async (text: string) => Object.values((await select(text))[0] ?? {})[0]
  const findDamage = async (...query: Parameters<Select>) => (await select(...query)) as Damage[]
  const { integrity } = dialect
  return {
    version,
    probe: async () => void (await readOne('SELECT 1')),
    id: async () => String(await readOne("SELECT value FROM meta WHERE key = 'store'")),
    head: async () => Number(await readOne('SELECT coalesce(max(position), 0) FROM plants')),
    headAround: async () => Number(await readOne('SELECT coalesce(max(last), 0) FROM segments')),
    epochs: async () =>
      isOld ? [] : ((await select('SELECT epoch, start FROM epochs ORDER BY number')) as Epoch[]),
    plants: makeReadPlants(select, isOld),
    async join({ after, last }, separator, withId = false) {
      const texts = dialect.blob(`coalesce(${dialect.join(withId ? itemWithId : 'item', '$3')}, '')`)
      const text = `SELECT count(*) AS count, ${texts} AS text FROM plants WHERE position > $1 AND position <= $2`
      const [row] = await select(text, [after, last, separator])
      const { count, text: joined } = row as unknown as { count: number; text: string | Uint8Array }
      if (typeof joined === 'string') return { count, text: Buffer.from(joined) }
      return { count, text: Buffer.from(joined.buffer, joined.byteOffset, joined.byteLength) }
    },
    find: makeFind(select),
    tokens: () => readTokens(select),
    notes: makeReadNotes(select),
    checks: {
      'the schema': () => findDamage(dialect.schemaFaults),
      'the beginning of the log': () => findDamage(early),
      'the ids': () => findDamage(doubles),
    },
    checkRange: async ({ after, last }) => (isOld ? [] : findDamage(wrongSegments(dialect), [after, last])),
    ...(integrity !== undefined && {
      checkFile: async () => (await select(integrity)).flatMap((row) => readReport(Object.values(row))),
    }),
  }
}

/** Makes what reads plants; those of an older version have no checksums. */
export function makeReadPlants(select: Select, isOld = false): StoreView['plants'] {
  const text = `SELECT position, id, item, ${isOld ? 'NULL AS checksum' : 'checksum'} FROM plants
    WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3`
  return async ({ after, last }, most) => (await select(text, [after, last, most])) as StoredPlant[]
}

/** Reads a row of the database's own check, which may have several lines, below the name of the database. */
function readReport(row: unknown[]): Damage[] {
  return String(row[0])
    .split('\n')
    .filter((line) => line !== 'ok' && !line.startsWith('***'))
    .map((line) => ({ detail: `integrity check: ${line}` }))
}
