// Puts a batch into the log, inside a transaction that its caller begins and commits.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { checksumOf } from '../checksum.ts'
import { makeEpoch } from '../epochs.ts'
import { setMark } from '../marks.ts'
import { sameItem } from '../same-item.ts'
import { keepSegment, segmentEnds } from '../segments.ts'
import type { Mark, Outcome } from '../store.ts'
import type { FlatEntries } from './messages.ts'

export class BatchInsert {
  readonly #head: StatementSync
  readonly #insert: StatementSync
  readonly #known: StatementSync
  readonly #addEpoch: StatementSync
  readonly #keepSegment: StatementSync
  readonly #setMark: StatementSync
  /** Since this opening the log has not grown: its next plant begins an epoch. */
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
    this.#keepSegment = db.prepare(keepSegment('SQLite'))
    this.#setMark = db.prepare(setMark('?', '?'))
  }

  /** Outcomes in the order of the entries. */
  run(flat: FlatEntries, mark?: Mark): Outcome[] {
    const start = (this.#head.get() as unknown as [number])[0]
    let position = start
    const outcomes: Outcome[] = []
    for (let i = 0; i < flat.length; i += 2) {
      const item = flat[i] as string
      const id = (flat[i + 1] ?? null) as number | null
      if (this.#insert.run(position + 1, id, item, checksumOf(position + 1, id, item)).changes === 1) {
        position++
        outcomes.push('added')
      } else {
        outcomes.push(
          sameItem((this.#known.get(id) as unknown as [string])[0], item) ? 'replayed' : 'conflict',
        )
      }
    }
    this.#epochIsPending = this.#epochIsDue && position > start
    if (this.#epochIsPending) this.#addEpoch.run(makeEpoch(), start)
    for (const last of segmentEnds(start, position)) this.#keepSegment.run({ 1: last })
    if (mark) this.#setMark.run(mark.key, mark.value)
    return outcomes
  }

  /** After the commit of what `run` did: only then has the epoch begun. */
  committed(): void {
    if (this.#epochIsPending) this.#epochIsDue = false
    this.#epochIsPending = false
  }
}
