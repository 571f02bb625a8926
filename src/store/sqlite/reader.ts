// The reading connection, in the main thread: a read takes microseconds.
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { segmentPlants, sqliteReadLockMs } from '../../limits.ts'
import { type Epoch, Epochs, latestEpoch, ownerOf } from '../epochs.ts'
import { findSources, joinedItems, type Source } from '../segments.ts'
import { type Head, type Row, StoreRefused, type Value } from '../store.ts'
import { type FileFault, type FileIds, OpenFiles } from './files.ts'
import type { WalIndex } from './wal-index.ts'

const head = `SELECT coalesce(max(position), 0), coalesce(${latestEpoch}, '') FROM plants`
/** The head in each row: both are of one moment. */
const epochs = `
  SELECT epoch, start, (SELECT coalesce(max(position), 0) FROM plants) FROM epochs ORDER BY number`
/** A range of a primary key is read in its order, and so joined in it. */
const sources: Record<Source, string> = {
  segments: `${selectItems(`group_concat(items, ',')`, segmentPlants)} FROM segments WHERE last > ?1 AND last <= ?2`,
  plants: `${selectItems(joinedItems.SQLite, 1)} FROM plants WHERE position > ?1 AND position <= ?2`,
}

/** The array as a blob: so it is not decoded on the way. */
function selectItems(joined: string, rowPlants: number): string {
  return `SELECT CAST('[' || coalesce(${joined}, '') || ']' AS BLOB), count(*) * ${rowPlants}, coalesce(${ownerOf('?2')}, '')`
}

/** Files that were looked at so short a time ago are as they were, but for what no look can see in time. */
const recentMs = 1

export class Reader {
  readonly #index: WalIndex
  readonly #db: DatabaseSync
  readonly #files: OpenFiles
  readonly #readHead: StatementSync
  readonly #readEpochs: StatementSync
  readonly #readItems: Record<Source, StatementSync>
  #lookedMs = Number.NEGATIVE_INFINITY
  #head: Head = { position: 0, epochs: new Epochs([]) }

  /** Opens the files that the writer has open. Throws StoreRefused when the path has others. */
  constructor(path: string, ids: FileIds, index: WalIndex) {
    this.#db = new DatabaseSync(path, { readOnly: true, timeout: sqliteReadLockMs })
    this.#readHead = this.#prepare(head)
    this.#readEpochs = this.#prepare(epochs)
    this.#readItems = {
      segments: this.#prepare(sources.segments),
      plants: this.#prepare(sources.plants),
    }
    this.#index = index
    this.#files = new OpenFiles(path, ids, this.#index)
    const fault = this.findFault()
    /* c8 ignore next 3: the path is given to another file in the same moment */
    if (fault === undefined) return
    this.close()
    throw new StoreRefused(fault.fault)
  }

  findFault(): FileFault | undefined {
    return this.#files.findFault()
  }

  /** Before the index is touched. */
  #restore(): void {
    const now = performance.now()
    if (now - this.#lookedMs < recentMs) return
    this.#index.restore()
    this.#lookedMs = now
  }

  head(): Head {
    this.#restore()
    const [position, latest] = this.#readHead.get() as unknown as [number, string]
    const { epochs } = this.#head
    if (latest !== epochs.latest) this.#head = this.#loadHead()
    else if (position !== this.#head.position) this.#head = { position, epochs }
    return this.#head
  }

  #loadHead(): Head {
    const rows = this.#readEpochs.all() as unknown as [string, number, number][]
    const list = rows.map(([epoch, start]): Epoch => ({ epoch, start }))
    return { position: (rows[0] as [string, number, number])[2], epochs: new Epochs(list) }
  }

  /** Undefined when the log does not hold all of it, or not in this epoch. */
  read(after: number, last: number, epoch: string): Buffer | undefined {
    this.#restore()
    for (const source of findSources(after, last)) {
      const row = this.#readItems[source].get(after, last)
      const [array, count, owner] = row as unknown as [Uint8Array, number, string]
      if (count === Math.max(0, last - after) && owner === epoch)
        return Buffer.from(array.buffer, array.byteOffset, array.byteLength)
    }
    return undefined
  }

  /** The id of the store. */
  readId(): string {
    return String(this.select("SELECT value FROM meta WHERE key = 'store'", {})[0]?.value)
  }

  select(text: string, values: Record<string, Value>): Row[] {
    this.#restore()
    return this.#db.prepare(text).all(values) as Row[]
  }

  close(): void {
    this.#db.close()
  }

  #prepare(text: string): StatementSync {
    const statement = this.#db.prepare(text)
    statement.setReturnArrays(true)
    return statement
  }
}
