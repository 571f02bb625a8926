// Reads the records of an input in any format.
import { hash } from 'node:crypto'
import { RecordCheck } from './check.ts'
import { type Columns, type Fields, findColumns } from './fields.ts'
import type { Input } from './input.ts'
import { InputError } from './input-error.ts'
import { type Detected, detectFormat, type Format, makeSplitter } from './input-format.ts'
import type { InputRecord } from './record.ts'
import { decodeUtf8 } from './utf8.ts'

/** An input is recognized by its records up to this size. */
const headBytes = 64 * 1024

export type RecordOptions = { format: Format | undefined; fields: Fields; trim: boolean }

/** `groups`: all records, in order; each group is to be read before the next. */
export type Records = {
  /** What decides what a record is. */
  readAs: string
  /** The text of the header row of a CSV input. */
  header: string | undefined
  check: RecordCheck
  /**
   * Hashes of the first 0, 1, 2 and more records: an input is recognized by those that were consumed, and by nothing
   * behind them. It may have grown since, and a fault there may have been fixed.
   */
  hashes: string[]
  groups: AsyncIterable<Iterable<InputRecord>>
}

/** Reads the beginning. Throws InputError when it has a fault before the first record. */
export async function openRecords(input: Input, options: RecordOptions): Promise<Records> {
  const { fields, trim } = options
  const format = options.format ?? detectFormat(input.head)
  const groups = split(input, format)
  const { head, fault } = await readHead(groups)
  const isCsv = format === 'csv' || (format === 'mended' && head[0]?.cells !== undefined)
  const header = isCsv ? head.shift() : undefined
  const columns = isCsv ? readColumns(header, fields, trim) : undefined
  return {
    readAs: JSON.stringify({ format, fields, trim }),
    header: header?.text,
    check: new RecordCheck({ fields, columns, trim }),
    hashes: hashRecords(head, header),
    groups: join(head, fault, groups),
  }
}

async function* split(input: Input, format: Detected): AsyncGenerator<Iterable<InputRecord>> {
  const splitter = makeSplitter(format)
  for await (const text of decodeUtf8(input.chunks)) yield splitter.split(text, false)
  yield splitter.split('', true)
}

type Head = { head: InputRecord[]; fault?: unknown }

async function readHead(groups: AsyncGenerator<Iterable<InputRecord>>): Promise<Head> {
  const head: InputRecord[] = []
  let bytes = 0
  try {
    while (bytes < headBytes) {
      const { done, value } = await groups.next()
      if (done) break
      for (const record of value) {
        head.push(record)
        bytes += sizeOf(record)
      }
    }
  } catch (fault) {
    if (head.length > 0) return { head, fault }
    throw fault
  }
  return { head }
}

function sizeOf({ text }: InputRecord): number {
  return Buffer.byteLength(text) + 1
}

function hashRecords(head: InputRecord[], header: InputRecord | undefined): string[] {
  const hashes = [hash('sha256', header?.text ?? '')]
  let bytes = header ? sizeOf(header) : 0
  for (const record of head) {
    if (bytes >= headBytes) break
    bytes += sizeOf(record)
    hashes.push(hash('sha256', `${hashes.at(-1)}\n${record.text}`))
  }
  return hashes
}

function readColumns(header: InputRecord | undefined, fields: Fields, trim: boolean): Columns {
  if (header?.cells === undefined) throw new InputError('is empty, expected a header row')
  const { cells, line, text } = header
  if (!text.isWellFormed()) throw new InputError('the header row is not UTF-8', line)
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, line)
}

async function* join(
  head: InputRecord[],
  fault: unknown,
  rest: AsyncIterable<Iterable<InputRecord>>,
): AsyncGenerator<Iterable<InputRecord>> {
  yield head
  if (fault !== undefined) throw fault
  yield* rest
}
