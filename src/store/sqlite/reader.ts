// The reading connection of an HTTP thread: a read takes microseconds.
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { segmentPlants, sqliteReadLockMs } from '../../limits.ts'
import { Epochs, latestEpoch, ownerOf } from '../epochs.ts'
import { findSources, type Source } from '../format/segments.ts'
import type { Head, Row, Value } from '../store.ts'
import type { OpenFiles } from './files/files.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'

const head = `SELECT coalesce(max(position), 0), coalesce(${latestEpoch}, '') FROM plants`
/** Query for the head with all epochs, so that both are of one moment. */
const epochs = `SELECT coalesce(max(position), 0),
  (SELECT json_group_array(json_object('epoch', epoch, 'start', start) ORDER BY number) FROM epochs) FROM plants`
/** Sources of items. A range of a primary key is read, and so joined, in its order. */
const sources: Record<Source, string> = {
  segments: `${selectItems(`group_concat(items, ',')`, segmentPlants)} FROM segments WHERE last > ?1 AND last <= ?2`,
  plants: `${selectItems(sqliteDialect.joinedItems, 1)} FROM plants WHERE position > ?1 AND position <= ?2`,
}

/** Query for the array as a blob, which is not decoded. */
function selectItems(joined: string, rowPlants: number): string {
  return `SELECT CAST('[' || coalesce(${joined}, '') || ']' AS BLOB), count(*) * ${rowPlants}, coalesce(${ownerOf('?2')}, '')`
}

export class Reader {
  readonly #db: DatabaseSync
  readonly #readHead: StatementSync
  readonly #readEpochs: StatementSync
  readonly #readItems: Record<Source, StatementSync>
  #head: Head = { position: 0, epochs: new Epochs([]) }

  /** Opens a file. Throws StoreRefused when its path names other files than `files`, which the writer has open. */
  constructor(files: OpenFiles) {
    this.#db = new DatabaseSync(files.path, { readOnly: true, timeout: sqliteReadLockMs, returnArrays: true })
    files.check()
    this.#readHead = this.#db.prepare(head)
    this.#readEpochs = this.#db.prepare(epochs)
    this.#readItems = {
      segments: this.#db.prepare(sources.segments),
      plants: this.#db.prepare(sources.plants),
    }
  }

  head(): Head {
    const [position, latest] = this.#readHead.get() as unknown as [number, string]
    const { epochs } = this.#head
    if (latest !== epochs.latest) this.#head = this.#loadHead()
    else if (position !== this.#head.position) this.#head = { position, epochs }
    return this.#head
  }

  #loadHead(): Head {
    const [position, list] = this.#readEpochs.get() as unknown as [number, string]
    return { position, epochs: new Epochs(JSON.parse(list)) }
  }

  /** Reads a range. Throws when the log does not hold all of it in this epoch. */
  read(after: number, last: number, epoch: string): Buffer {
    for (const source of findSources(after, last)) {
      const row = this.#readItems[source].get(after, last)
      const [array, count, owner] = row as unknown as [Uint8Array, number, string]
      if (count === Math.max(0, last - after) && owner === epoch)
        return Buffer.from(array.buffer, array.byteOffset, array.byteLength)
    }
    throw new Error(`the log does not hold plants ${after + 1} to ${last} of epoch ${epoch}`)
  }

  /** Reads the id of the store. */
  readId(): string {
    return String(this.select("SELECT value FROM meta WHERE key = 'store'")[0]?.value)
  }

  select(text: string, values: Value[] = []): Row[] {
    const statement = this.#db.prepare(text)
    statement.setReturnArrays(false)
    return statement.all(named(values)) as Row[]
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}
