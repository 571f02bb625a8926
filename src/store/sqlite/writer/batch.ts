// Inserts batches into the log, within a transaction of the caller.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { makeEpoch } from '../../epochs.ts'
import { checksumOf } from '../../format/checksum.ts'
import { keepSegment, segmentEnds } from '../../format/segments.ts'
import { setMark } from '../../marks.ts'
import { sameItem } from '../../same-item.ts'
import type { Outcome } from '../../store.ts'
import { sqliteDialect } from '../sqlite-dialect.ts'
import type { Batch } from './writer-messages.ts'

export class BatchInsert {
  readonly #head: StatementSync
  readonly #insert: StatementSync
  readonly #known: StatementSync
  readonly #addEpoch: StatementSync
  readonly #keepSegment: StatementSync
  readonly #setMark: StatementSync
  /** True until the log grows for the first time since it was opened: that begins an epoch. */
  #epochIsDue = true
  #epochIsPending = false

  constructor(db: DatabaseSync) {
    this.#head = db.prepare('SELECT coalesce(max(position), 0) FROM plants')
    this.#head.setReturnArrays(true)
    this.#insert = db.prepare(
      'INSERT INTO plants VALUES (?, ?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING',
    )
    this.#known = db.prepare('SELECT item FROM plants WHERE id = ?')
    this.#known.setReturnArrays(true)
    this.#addEpoch = db.prepare('INSERT INTO epochs SELECT coalesce(max(number), 0) + 1, ?, ? FROM epochs')
    this.#keepSegment = db.prepare(keepSegment(sqliteDialect))
    this.#setMark = db.prepare(setMark('?', '?'))
  }

  /** Inserts batches; returns the outcomes of each, in the order of its entries. */
  run(batches: Batch[]): Outcome[][] {
    const start = (this.#head.get() as unknown as [number])[0]
    let position = start
    const outcomes = batches.map(({ items, ids }) =>
      items.map((item, index) => {
        const outcome = this.#add(position + 1, item, ids[index] ?? null)
        if (outcome === 'added') position++
        return outcome
      }),
    )
    this.#epochIsPending = this.#epochIsDue && position > start
    if (this.#epochIsPending) this.#addEpoch.run(makeEpoch(), start)
    for (const last of segmentEnds(start, position)) this.#keepSegment.run({ 1: last })
    for (const { mark } of batches) if (mark) this.#setMark.run(mark.key, mark.value)
    return outcomes
  }

  #add(position: number, item: string, id: number | null): Outcome {
    if (this.#insert.run(position, id, item, checksumOf(position, id, item)).changes === 1) return 'added'
    return sameItem((this.#known.get(id) as unknown as [string])[0], item) ? 'replayed' : 'conflict'
  }

  /** Notes the commit of what `run` did: only now has the epoch begun. */
  committed(): void {
    if (this.#epochIsPending) this.#epochIsDue = false
    this.#epochIsPending = false
  }
}
