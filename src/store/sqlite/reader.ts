// The reading connection of the main thread: a read takes microseconds.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Logger } from 'pino'
import type { Head } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import { Outage } from '../outage.ts'
import type { Row, Value } from '../sql/sql.ts'
import { codeOf } from './errors.ts'
import { named } from './sqlite-dialect.ts'

const headQuery = 'SELECT position, mark FROM plants ORDER BY position DESC LIMIT 1'
const markQuery = 'SELECT mark FROM plants WHERE position = ?'
/** Query for a page as a blob, which is not decoded. A range of a primary key is read, and so joined, in its order. */
const pageQuery = `
  SELECT CAST('[' || coalesce(group_concat(item, ','), '') || ']' AS BLOB), count(*),
    coalesce((SELECT mark FROM plants WHERE position = ?2), '')
  FROM plants WHERE position > ?1 AND position <= ?2`
/** The most marks that are kept with a head. */
const maxMarks = 1000

const words = {
  gone: 'the database cannot be read',
  still: 'the database still cannot be read',
  back: 'the database can be read again',
}

export type Reader = ReturnType<typeof makeReader>

/** `check`: called after each read; throws if what was read may be wrong. */
export function makeReader(db: DatabaseSync, logger: Logger, check = () => {}) {
  const guard = makeGuard(logger)
  const readPage = prepareArrays(db, pageQuery)

  function read(after: number, last: number, mark: string): Buffer {
    const row = readPage.get(after, last) as unknown as [Uint8Array, number, string]
    const [array, count, found] = row
    if (count !== last - after || found !== mark)
      throw new Error(`the log does not hold plants ${after + 1} to ${last} with the mark ${mark}`)
    check()
    return Buffer.from(array.buffer, array.byteOffset, array.byteLength)
  }

  function select(text: string, values: Value[] = []): Row[] {
    const statement = prepareArrays(db, text)
    const names = statement.columns().map(({ name }) => name)
    const rows = statement.all(named(values)) as unknown as Value[][]
    check()
    return rows.map((values) => {
      const row: Row = {}
      for (const [index, name] of names.entries()) row[name] = values[index] as Value
      return row
    })
  }

  return {
    head: guard(makeHeadReader(db, check)),
    read: guard(read),
    select: async (text: string, values?: Value[]) => guard(select)(text, values),
    close() {
      if (db.isOpen) db.close()
    },
  }
}

/** A statement whose rows are arrays, which are faster than objects. */
function prepareArrays(db: DatabaseSync, text: string): StatementSync {
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  return statement
}

/** Makes a function that reads the head. Marks are kept while the head is the same, and so is all below it. */
function makeHeadReader(db: DatabaseSync, check: () => void) {
  const readLast = prepareArrays(db, headQuery)
  const readMark = prepareArrays(db, markQuery)
  let known = new SqliteHead(0, '')
  return (positions: readonly number[] = []): Head => {
    const [position, mark] = (readLast.get() ?? [0, '']) as unknown as [number, string]
    if (position !== known.position || mark !== known.mark || known.marks.size > maxMarks)
      known = new SqliteHead(position, mark)
    for (const asked of positions) {
      if (asked >= position || known.marks.has(asked)) continue
      const row = readMark.get(asked) as unknown as [string] | undefined
      if (row) known.marks.set(asked, row[0])
    }
    check()
    return known
  }
}

class SqliteHead implements Head {
  readonly position: number
  readonly mark: string
  readonly marks: Map<number, string>

  constructor(position: number, mark: string) {
    this.position = position
    this.mark = mark
    this.marks = new Map([
      [0, ''],
      [position, mark],
    ])
  }

  markOf(position: number): string | undefined {
    return this.marks.get(position)
  }
}

/** Makes a function whose errors are logged as an outage, and become StoreUnavailable in a rejection. */
function makeGuard(logger: Logger) {
  const outage = new Outage(logger, words)
  return <A extends unknown[], T>(work: (...args: A) => T) =>
    (...args: A): T | Promise<T> => {
      try {
        const result = work(...args)
        outage.reportRecovery()
        return result
      } catch (cause) {
        const { message } = cause as Error
        outage.reportFailure(message, { code: codeOf(cause) })
        return Promise.reject(new StoreUnavailable('unread', message, { cause, isLogged: true }))
      }
    }
}
