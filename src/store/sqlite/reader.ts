// The reading connection of the main thread: a read takes microseconds.
import type { DatabaseSync } from 'node:sqlite'
import type { Head } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Row, Value } from '../sql/sql.ts'

const headQuery = 'SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1'
/**
 * Reads a page as bytes, which need no decoding. The primary key is scanned, and thus concatenated, in order; NOT INDEXED
 * prevents that an index that someone has added is scanned instead.
 */
const pageQuery = `
  SELECT CAST('[' || coalesce(group_concat(item, ','), '') || ']' AS BLOB), count(*),
    coalesce((SELECT mark FROM plants WHERE position = ?2), '')
  FROM plants NOT INDEXED WHERE position > ?1 AND position <= ?2`
/** Maximum number of marks cached with a head: about 2 MiB, enough for a full cache of pages of 100 plants. */
const maxMarks = 20_000

export type Reader = ReturnType<typeof makeReader>

/** Returns functions that read on this connection, synchronously, and report failures as StoreUnavailable. */
export function makeReader(db: DatabaseSync) {
  const readPage = db.prepare(pageQuery, { returnArrays: true })

  function read(after: number, last: number, mark: string): Buffer {
    const row = readPage.get(after, last) as unknown as [Uint8Array<ArrayBuffer>, number, string]
    const [array, count, found] = row
    if (count !== last - after || found !== mark)
      throw new Error(`the log does not contain plants ${after + 1} to ${last} with the mark ${mark}`)
    return Buffer.from(array.buffer, array.byteOffset, array.byteLength)
  }

  return {
    head: guard(makeHeadReader(db)),
    read: guard(read),
    select: guard(
      (text: string, values: Value[] = []) => db.prepare(text.replaceAll('$', '?')).all(...values) as Row[],
    ),
    close() {
      if (db.isOpen) db.close()
    },
  }
}

/** Returns a function that reads the head. Marks are cached while the head, and therefore the log, is unchanged. */
function makeHeadReader(db: DatabaseSync) {
  const readLast = db.prepare(headQuery, { returnArrays: true })
  const readMark = db.prepare('SELECT mark FROM plants WHERE position = ?', { returnArrays: true })
  let known: { head: Head; marks: Map<number, string | undefined> } | undefined
  return (positions: readonly number[] = []): Head => {
    const [position, mark] = (readLast.get() ?? [0, '']) as unknown as [number, string]
    if (position !== known?.head.position || mark !== known.head.mark || known.marks.size > maxMarks) {
      const marks = new Map<number, string | undefined>([[0, '']]).set(position, mark)
      known = { marks, head: { position, mark, markOf: (asked) => marks.get(asked) } }
    }
    const { head, marks } = known
    for (const asked of positions)
      if (!marks.has(asked)) marks.set(asked, (readMark.get(asked) as unknown as [string] | undefined)?.[0])
    return head
  }
}

/** Wraps a function: its errors become rejections with StoreUnavailable. */
function guard<A extends unknown[], T>(work: (...args: A) => T): (...args: A) => T | Promise<T> {
  return (...args) => {
    try {
      return work(...args)
    } catch (cause) {
      return Promise.reject(new StoreUnavailable('unread', (cause as Error).message, { cause }))
    }
  }
}
