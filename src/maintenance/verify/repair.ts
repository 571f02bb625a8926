// Adds the checksums and segments that an older version did not write.

import { checksumOf } from '../../store/format/checksum.ts'
import { keepSegment, segmentEnds } from '../../store/format/segments.ts'
import type { Row, Store } from '../../store/store.ts'
import type { Dialect } from '../../store/view.ts'

const batchPlants = 2000

/** Adds missing checksums; resolves to their number. Only for a store that was verified. */
export async function repairChecksums({ sql }: Pick<Store, 'sql'>, signal?: AbortSignal): Promise<number> {
  let [done, position] = [0, 0]
  for (;;) {
    signal?.throwIfAborted()
    const rows = await sql.select(
      `SELECT position, id, item FROM plants WHERE checksum IS NULL AND position > $1
        ORDER BY position LIMIT ${batchPlants}`,
      [position],
    )
    const last = rows.at(-1)
    if (last === undefined) return done
    done += await sql.execute(fill(rows))
    position = Number(last.position)
  }
}

/** Adds missing segments; resolves to their number. Only for a store that was verified. */
export async function repairSegments(
  { sql, log }: Pick<Store, 'sql' | 'log'>,
  dialect: Dialect,
  signal?: AbortSignal,
): Promise<number> {
  const { position } = await log.head()
  let kept = 0
  for (const last of segmentEnds(0, position)) {
    signal?.throwIfAborted()
    kept += await sql.execute(keepSegment(dialect), [last])
  }
  return kept
}

/** SQL that fills in checksums, the only column that the log's trigger lets change. */
function fill(rows: Row[]): string {
  const values = rows.map(
    ({ position, id, item }) =>
      `(${position}, ${checksumOf(Number(position), id as number | null, String(item))})`,
  )
  return `WITH sums (place, value) AS (VALUES ${values})
    UPDATE plants SET checksum = value FROM sums WHERE position = place AND checksum IS NULL`
}
