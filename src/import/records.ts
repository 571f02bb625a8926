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

/** Reads up to the first plant. Throws InputError when it cannot get there. */
export async function openRecords(input: Input, options: RecordOptions): Promise<Records> {
  const { fields, trim } = options
  const format = options.format ?? detectFormat(input.head)
  const utf8 = new Utf8Chunks()
  const groups = split(input, format, utf8)
  const first = format === 'csv' ? await readHeader(groups) : { header: undefined, rest: [] }
  const columns = first.header && readColumns(first.header, fields, trim)
  const checked: CheckOptions = { fields, columns, trim, utf8 }
  return { format, check: new RecordCheck(checked), groups: join(first.rest, groups) }
}

async function* split(input: Input, format: Format, utf8: Utf8Chunks): AsyncGenerator<InputRecord[]> {
  const splitter = makeSplitter(format)
  for await (const chunk of input.chunks) yield await splitter.push(utf8.push(chunk))
  yield await splitter.push(utf8.end())
  yield await splitter.end()
}

async function readHeader(groups: AsyncGenerator<InputRecord[]>) {
  for (let next = await groups.next(); !next.done; next = await groups.next()) {
    const [header, ...rest] = next.value
    if (header) return { header, rest }
  }
  throw new InputError('is empty, expected a header row')
}

function readColumns({ line, source }: InputRecord, fields: Fields, trim: boolean): Columns {
  const cells = source as string[]
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, line)
}

async function* join(
  first: InputRecord[],
  rest: AsyncIterable<InputRecord[]>,
): AsyncGenerator<InputRecord[]> {
  yield first
  yield* rest
}
