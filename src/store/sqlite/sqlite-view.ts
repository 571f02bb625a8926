// A SQLite file opened to be read only, beside whoever writes to it.
import { statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { sqliteLockMs } from '../../limits.ts'
import { StoreRefused, StoreUnavailable, type Value } from '../store.ts'
import type { Joined, Range, StoreView } from '../view.ts'
import { headerBytes, isStore, readVersion } from './database.ts'
import { existingPath } from './path.ts'

/** Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  const db = openReadOnly(path)
  try {
    if (!isStore(db)) throw new StoreRefused(`${path} is not a plant store`)
    return new SqliteView(db, readVersion(db))
  } catch (error) {
    db.close()
    throw refusal(path, error as Error)
  }
}

/** Opens a SQLite file that is there. Throws StoreRefused. */
export function openReadOnly(path: string): DatabaseSync {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) throw new StoreRefused(`there is no file ${path}`)
  // SQLite takes what is shorter than its header for an empty file.
  if (size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  try {
    return new DatabaseSync(path, { readOnly: true, timeout: sqliteLockMs })
  } catch (error) {
    throw refusal(path, error as Error)
  }
}

function refusal(path: string, error: Error): StoreRefused {
  if (error instanceof StoreRefused) return error
  return new StoreRefused(`cannot open ${path}: ${error.message}`, { cause: error })
}

class SqliteView implements StoreView {
  readonly engine = 'SQLite'
  readonly version: number
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(db: DatabaseSync, version: number) {
    this.#db = db
    this.version = version
  }

  async select<R extends Value[]>(text: string, values: Value[] = []): Promise<R[]> {
    return this.#all(text, values) as unknown as R[]
  }

  /** A range of the primary key is read in its order, and so joined in it. As blobs, nothing is decoded on the way. */
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
      return statement.all(Object.fromEntries(values.map((value, index) => [index + 1, value])))
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }

  async close(): Promise<void> {
    this.#db.close()
  }
}

function toBuffer(blob: Uint8Array | null): Buffer {
  return blob ? Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength) : Buffer.alloc(0)
}
