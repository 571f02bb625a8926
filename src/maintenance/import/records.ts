// The records of an input, whatever its format: from bytes to what the check takes.
import { type CheckOptions, RecordCheck } from './check.ts'
import { type Columns, type Fields, findColumns } from './fields.ts'
import { detectFormat, type Format, makeSplitter } from './format.ts'
import type { Input } from './input.ts'
import { InputError } from './input-error.ts'
import type { InputRecord } from './record.ts'
import { Utf8Chunks } from './utf8.ts'

export type RecordOptions = { format: Format | undefined; fields: Fields; trim: boolean }

/** `groups`: records as they come, in order. */
export type Records = {
  format: Format
  check: RecordCheck
  groups: AsyncIterable<InputRecord[]>
}

/** Reads up to the first record. Throws InputError when it cannot get there. */
export async function openRecords(input: Input, options: RecordOptions): Promise<Records> {
  const { fields, trim } = options
  const format = options.format ?? detectFormat(input.head)
  const utf8 = new Utf8Chunks()
  const groups = split(input, format, utf8)
  const first = await readFirst(groups)
  const columns = format === 'csv' ? readColumns(first.shift(), fields, trim) : undefined
  const checked: CheckOptions = { fields, columns, trim, utf8 }
  return { format, check: new RecordCheck(checked), groups: join(first, groups) }
}

async function* split(input: Input, format: Format, utf8: Utf8Chunks): AsyncGenerator<InputRecord[]> {
  const splitter = makeSplitter(format)
  for await (const chunk of input.chunks) yield* find((found) => splitter.push(utf8.push(chunk), found))
  yield* find((found) => splitter.push(utf8.end(), found))
  yield* find((found) => splitter.end(found))
}

/** What was found before a fault comes before it. */
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

async function readFirst(groups: AsyncGenerator<InputRecord[]>): Promise<InputRecord[]> {
  for (let next = await groups.next(); !next.done; next = await groups.next())
    if (next.value.length > 0) return next.value
  return []
}

function readColumns(header: InputRecord | undefined, fields: Fields, trim: boolean): Columns {
  if (header === undefined) throw new InputError('is empty, expected a header row')
  const cells = header.source as string[]
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, header.line)
}

async function* join(
  first: InputRecord[],
  rest: AsyncIterable<InputRecord[]>,
): AsyncGenerator<InputRecord[]> {
  yield first
  yield* rest
}
