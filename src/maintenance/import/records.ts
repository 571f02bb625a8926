// Reads the records of an input in any format.
import { hash } from 'node:crypto'
import { RecordCheck } from './check.ts'
import { type Columns, type Fields, findColumns, resolveFields } from './fields.ts'
import type { ImportOptions } from './import-options.ts'
import type { Input } from './input.ts'
import { InputError } from './input-error.ts'
import { detectFormat, splitters } from './input-format.ts'
import type { Groups, InputRecord } from './record.ts'

/** An input is recognized by its records up to this size. */
const headBytes = 64 * 1024

export type Records = Awaited<ReturnType<typeof openRecords>>

/** Reads the beginning. Throws InputError when it has a fault before the first record. */
export async function openRecords(input: Input, options: ImportOptions) {
  const { trim = false } = options
  const fields = resolveFields(options)
  const format = options.format ?? detectFormat(input.head)
  const groups = splitters[format](input.texts)
  const { head, hashes, fault } = await readHead(groups)
  const isCsv = format === 'csv' || (format === 'mended' && head[0]?.cells !== undefined)
  const header = isCsv ? head.shift() : undefined
  if (header) hashes.shift()
  const columns = isCsv ? readColumns(header, fields, trim) : undefined
  return {
    /** What decides what a record is. */
    readAs: JSON.stringify({ format, fields, trim }),
    /** The text of the header row of a CSV input. */
    header: header?.text,
    check: new RecordCheck({ fields, columns, trim }),
    /**
     * Hashes of the first 0, 1, 2 and more records: an input is recognized by those that were consumed, and by nothing
     * behind them. It may have grown since, and a fault there may have been fixed.
     */
    hashes,
    /** All records. */
    groups: join(head, fault, groups),
  }
}

/** Reads the beginning, with the header row, if any. */
async function readHead(groups: Groups) {
  const head: InputRecord[] = []
  const hashes = ['']
  let bytes = 0
  let fault: unknown
  try {
    while (bytes < headBytes) {
      const { done, value } = await groups.next()
      if (done) break
      for (const record of value) {
        head.push(record)
        if (bytes >= headBytes) continue
        bytes += Buffer.byteLength(record.text) + 1
        hashes.push(hash('sha256', `${hashes.at(-1)}\n${record.text}`))
      }
    }
  } catch (error) {
    if (head.length === 0) throw error
    fault = error
  }
  return { head, hashes, fault }
}

function readColumns(header: InputRecord | undefined, fields: Fields, trim: boolean): Columns {
  if (header?.cells === undefined) throw new InputError('is empty, expected a header row')
  const { cells, line, text } = header
  if (!text.isWellFormed()) throw new InputError('the header row is not UTF-8', line)
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, line)
}

async function* join(head: InputRecord[], fault: unknown, rest: Groups): Groups {
  yield head
  if (fault !== undefined) throw fault
  yield* rest
}
