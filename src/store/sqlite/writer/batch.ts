// Inserts batches into the log, within a transaction of the caller.
import type { DatabaseSync } from 'node:sqlite'
import { makeEpoch } from '../../epochs.ts'
import { checksumOf } from '../../format/checksum.ts'
import { keepSegment, segmentEnds } from '../../format/segments.ts'
import { setMark } from '../../marks.ts'
import { sameItem } from '../../same-item.ts'
import type { Outcome } from '../../store.ts'
import { sqliteDialect } from '../sqlite-dialect.ts'
import type { Batch } from './writer-messages.ts'

function prepare(db: DatabaseSync) {
  return {
    head: db.prepare('SELECT coalesce(max(position), 0) AS position FROM plants'),
    insert: db.prepare(
      'INSERT INTO plants VALUES (?, ?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING',
    ),
    known: db.prepare('SELECT item FROM plants WHERE id = ?'),
    addEpoch: db.prepare('INSERT INTO epochs SELECT coalesce(max(number), 0) + 1, ?, ? FROM epochs'),
    keepSegment: db.prepare(keepSegment(sqliteDialect)),
    setMark: db.prepare(setMark('?', '?')),
  }
}

export class BatchInsert {
  readonly #sql: ReturnType<typeof prepare>
  /** True until the log grows for the first time since it was opened: that begins an epoch. */
  #epochIsDue = true
  #epochIsPending = false

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Inserts batches; returns the outcomes of each, in the order of its entries. */
  run(batches: Batch[]): Outcome[][] {
    const start = Number(this.#sql.head.get()?.position)
    let position = start
    const outcomes = batches.map(({ items, ids }) =>
      items.map((item, index) => {
        const outcome = this.#add(position + 1, item, ids[index] ?? null)
        if (outcome === 'added') position++
        return outcome
      }),
    )
    this.#epochIsPending = this.#epochIsDue && position > start
    if (this.#epochIsPending) this.#sql.addEpoch.run(makeEpoch(), start)
    for (const last of segmentEnds(start, position)) this.#sql.keepSegment.run({ 1: last })
    for (const { mark } of batches) if (mark) this.#sql.setMark.run(mark.key, mark.value)
    return outcomes
  }

  #add(position: number, item: string, id: number | null): Outcome {
    if (this.#sql.insert.run(position, id, item, checksumOf(position, id, item)).changes === 1) return 'added'
    return sameItem(String(this.#sql.known.get(id)?.item), item) ? 'replayed' : 'conflict'
  }

  /** Notes the commit of what `run` did: only now has the epoch begun. */
  committed(): void {
    if (this.#epochIsPending) this.#epochIsDue = false
  }
}
