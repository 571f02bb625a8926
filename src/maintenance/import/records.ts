// Reads the records of an input in any format.
import { type CheckOptions, RecordCheck } from './check.ts'
import { type Columns, type Fields, findColumns } from './fields.ts'
import { headBytes, type Input } from './input.ts'
import { InputError } from './input-error.ts'
import { type Detected, detectFormat, type Format, makeSplitter } from './input-format.ts'
import { InputIdentity } from './input-identity.ts'
import type { InputRecord } from './record.ts'
import { Utf8Chunks } from './utf8.ts'

export type RecordOptions = { format: Format | undefined; fields: Fields; trim: boolean }

/** `groups`: all records, in order; `identity`: of the records in the beginning. */
export type Records = {
  format: Detected
  /** The text of the header row of a CSV input. */
  header: string | undefined
  check: RecordCheck
  identity: InputIdentity
  groups: AsyncIterable<InputRecord[]>
}

/** Reads the beginning. Throws InputError when it has a fault before the first record. */
export async function openRecords(input: Input, options: RecordOptions): Promise<Records> {
  const { fields, trim } = options
  const format = options.format ?? detectFormat(input.head)
  const utf8 = new Utf8Chunks()
  const groups = split(input, format, utf8)
  const { head, fault } = await readHead(groups, input.head.length < headBytes)
  const isCsv = format === 'csv' || (format === 'mended' && Array.isArray(head[0]?.source))
  const header = isCsv ? head.shift() : undefined
  const columns = isCsv ? readColumns(header, fields, trim) : undefined
  const checked: CheckOptions = { fields, columns, trim, utf8 }
  return {
    format,
    header: header?.text,
    check: new RecordCheck(checked),
    identity: new InputIdentity(head, header?.source),
    groups: join(head, fault, groups),
  }
}

async function* split(input: Input, format: Detected, utf8: Utf8Chunks): AsyncGenerator<InputRecord[]> {
  const splitter = makeSplitter(format)
  for await (const chunk of input.chunks) yield* find((found) => splitter.push(utf8.push(chunk), found))
  yield* find((found) => splitter.push(utf8.end(), found))
  yield* find((found) => splitter.end(found))
}

/** Yields the records before a fault, then throws it. */
async function* find(work: (found: InputRecord[]) => void | Promise<void>): AsyncGenerator<InputRecord[]> {
  const found: InputRecord[] = []
  try {
    await work(found)
  } catch (error) {
    yield found
    throw error
  }
  yield found
}

type Head = { head: InputRecord[]; fault?: unknown }

/** Reads the records of the beginning. When that is the whole input, they include those that end with it. */
async function readHead(groups: AsyncGenerator<InputRecord[]>, isWhole: boolean): Promise<Head> {
  const head: InputRecord[] = []
  try {
    for (let next = await groups.next(); !next.done; next = await groups.next()) {
      head.push(...next.value)
      if (head.length > 0 && !isWhole) break
    }
  } catch (fault) {
    if (head.length > 0) return { head, fault }
    throw fault
  }
  return { head }
}

function readColumns(header: InputRecord | undefined, fields: Fields, trim: boolean): Columns {
  if (header === undefined) throw new InputError('is empty, expected a header row')
  const cells = header.source as string[]
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, header.line)
}

async function* join(
  head: InputRecord[],
  fault: unknown,
  rest: AsyncIterable<InputRecord[]>,
): AsyncGenerator<InputRecord[]> {
  yield head
  if (fault !== undefined) throw fault
  yield* rest
}
