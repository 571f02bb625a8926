// What a store keeps beside its log, in the tables of both engines.
import type { NoteChange, Store, Upkeep } from '../engine.ts'
import { checksumOf } from '../format/checksum.ts'
import { keepSegment, segmentEnds } from './segments.ts'
import { type Dialect, makeFind, makeReadNotes, type Sql } from './sql.ts'
import { makeTokenNotes, putToken, readTokens } from './sql-tokens.ts'
import { makeReadPlants } from './sql-view.ts'

const repairedAtOnce = 2000

/** The statement that changes a note within a batch; NULL, which no value may be, makes its transaction fail. */
export function changeNote(key: string, value: string, before: string): string {
  return `UPDATE meta SET value = CASE WHEN value = ${before} THEN ${value} END WHERE key = ${key}`
}

function writeNote({ key, before, value }: NoteChange): [text: string, values: string[]] {
  if (value === '') return ['DELETE FROM meta WHERE key = $1 AND value = $2', [key, before]]
  if (before === '') return ['INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [key, value]]
  return ['UPDATE meta SET value = $2 WHERE key = $1 AND value = $3', [key, value, before]]
}

/** Makes all of a store but its log, and what is the engine's own. */
export function makeSqlStore(sql: Sql, dialect: Dialect) {
  const { select, execute } = sql
  return {
    sql,
    tokens: makeTokenNotes(sql),
    notes: {
      read: makeReadNotes(select),
      change: async (change: NoteChange) => (await execute(...writeNote(change))) === 1,
    },
    find: makeFind(select),
    upkeep: makeUpkeep(sql, dialect),
  } satisfies Partial<Store> & { sql: Sql }
}

/**
 * Takes over an id. Run even with the same id: on PostgreSQL its row lock waits for the last COMMIT of a copy that was
 * killed.
 */
const adopt = `
  UPDATE meta SET value = $1 WHERE key = 'store' AND
    (value = $1 OR NOT EXISTS (SELECT 1 FROM plants) AND NOT EXISTS (SELECT 1 FROM tokens))`

function makeUpkeep(sql: Sql, dialect: Dialect): Upkeep {
  const { select, execute } = sql
  return {
    plants: makeReadPlants(select),
    tokens: () => readTokens(select),
    adopt: async (id) => (await execute(adopt, [id])) === 1,
    putToken: (token) => putToken(execute, token),
    async putEpochs(epochs) {
      for (const [index, { epoch, start }] of epochs.entries())
        await execute(dialect.putEpoch, [index + 1, epoch, start])
      await execute('DELETE FROM epochs WHERE number > $1', [epochs.length])
    },
    async repair(head, signal) {
      const repaired = await repairChecksums(sql, signal)
      let segments = 0
      for (const last of segmentEnds(0, head)) {
        signal?.throwIfAborted()
        segments += await execute(keepSegment(dialect), [last])
      }
      return { repaired, segments }
    },
  }
}

/** Adds missing checksums, the only column that the log's trigger lets change; resolves to their number. */
async function repairChecksums({ select, execute }: Sql, signal?: AbortSignal): Promise<number> {
  let [done, after] = [0, 0]
  for (;;) {
    signal?.throwIfAborted()
    const rows = await select(
      `SELECT position, id, item FROM plants WHERE checksum IS NULL AND position > $1
        ORDER BY position LIMIT ${repairedAtOnce}`,
      [after],
    )
    const last = rows.at(-1)
    if (last === undefined) return done
    const sums = rows.map(({ position, id, item }) => {
      const sum = checksumOf(Number(position), id as number | null, String(item))
      return `(${position}, ${sum})`
    })
    done += await execute(`WITH sums (place, value) AS (VALUES ${sums})
      UPDATE plants SET checksum = value FROM sums WHERE position = place AND checksum IS NULL`)
    after = Number(last.position)
  }
}
