// A SQLite file opened for reading only, while other processes may write to it.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { EngineStatus } from '../engine-status.ts'
import { StoreRefused, StoreUnavailable, type Value } from '../store.ts'
import type { Joined, Range, StoreView } from '../view.ts'
import { existingPath } from './files/path.ts'
import { isStore, openReadOnly, type ReadOnlyFile, readVersion, refusal } from './files/read-only.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import { readSqliteStatus } from './sqlite-status.ts'

/** Opens a view. Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  const file = openReadOnly(path)
  try {
    if (!isStore(file.db)) throw new StoreRefused(`${path} is not a plant store`)
    return new SqliteView(file, url)
  } catch (error) {
    file.db.close()
    throw refusal(path, error as Error)
  }
}

export class SqliteView implements StoreView {
  readonly dialect = sqliteDialect
  readonly version: number
  readonly #db: DatabaseSync
  readonly #checkSame: ReadOnlyFile['checkSame']
  readonly #url: string
  readonly #statements = new Map<string, StatementSync>()

  constructor({ db, checkSame }: ReadOnlyFile, url: string) {
    this.#db = db
    this.#checkSame = checkSame
    this.version = readVersion(db)
    this.#url = url
  }

  async select<R extends Value[]>(text: string, values: Value[] = []): Promise<R[]> {
    return this.#all(text, values) as unknown as R[]
  }

  /** A range of the primary key is read, and so joined, in its order. Blobs are not decoded. */
  async join(expressions: string[], { after, last }: Range, separator: string): Promise<Joined> {
    const texts = expressions.map((expression) => `CAST(group_concat(${expression}, $3) AS BLOB)`)
    const text = `SELECT count(*), ${texts} FROM plants WHERE position > $1 AND position <= $2`
    const [row] = this.#all(text, [after, last, separator])
    const [count, ...blobs] = row as unknown as [number, ...(Uint8Array | null)[]]
    return { count, texts: blobs.map(toBuffer) }
  }

  #all(text: string, values: Value[]): unknown[] {
    try {
      let statement = this.#statements.get(text)
      if (!statement) {
        statement = this.#db.prepare(text)
        statement.setReturnArrays(true)
        this.#statements.set(text, statement)
      }
      const rows = statement.all(Object.fromEntries(values.map((value, index) => [index + 1, value])))
      this.#checkSame?.()
      return rows
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }

  async readStatus(): Promise<EngineStatus> {
    return readSqliteStatus(this, this.#url)
  }

  async close(): Promise<void> {
    this.#db.close()
  }
}

function toBuffer(blob: Uint8Array | null): Buffer {
  return blob ? Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength) : Buffer.alloc(0)
}
