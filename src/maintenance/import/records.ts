// Reads the records of an input in any format.
import { decodeUtf8, notUtf8, RecordCheck } from './check.ts'
import { type Columns, type Fields, findColumns, resolveFields } from './fields.ts'
import type { ImportOptions } from './import-options.ts'
import { Beginning, type Input, openInput } from './input.ts'
import { InputError } from './input-error.ts'
import { detectFormat, splitters } from './input-format.ts'
import type { Groups, InputRecord } from './record.ts'

export type Records = Awaited<ReturnType<typeof openRecords>>

/** Opens an input and reads its beginning. Throws InputError when it has a fault before the first record. */
export async function openRecords(path: string, options: ImportOptions) {
  const input = await openInput(path, options.signal)
  try {
    return { ...(await readBeginning(input, options)), input }
  } catch (error) {
    input.close()
    throw error
  }
}

async function readBeginning({ head, bytes }: Input, options: ImportOptions) {
  const { trim = false } = options
  const fields = resolveFields(options)
  const format = options.format ?? detectFormat(head)
  const beginning = new Beginning()
  const groups = splitters[format](readTexts(bytes, beginning))
  const { header, rest } = format === 'csv' ? await readHeader(groups) : { rest: [] }
  const columns = header && readColumns(header, fields, trim)
  return {
    format,
    /** What decides what a record is. */
    readAs: JSON.stringify({ format, fields, trim }),
    /** The header row of a CSV input. */
    header,
    check: new RecordCheck({ fields, columns, trim }),
    /** The hash of what was read. */
    beginning,
    /** All records. */
    groups: join(rest, groups),
  }
}

async function* readTexts(bytes: AsyncIterable<Buffer>, beginning: Beginning): AsyncGenerator<string> {
  for await (const chunk of bytes) {
    beginning.add(chunk)
    yield chunk.toString('latin1')
  }
}

/** Reads up to the header row, and the rows read with it. */
async function readHeader(groups: Groups): Promise<{ header: InputRecord; rest: Iterable<InputRecord> }> {
  for (let next = await groups.next(); !next.done; next = await groups.next()) {
    const rows = next.value[Symbol.iterator]()
    const { value } = rows.next()
    if (value) return { header: value, rest: { [Symbol.iterator]: () => rows } }
  }
  throw new InputError('is empty, expected a header row')
}

function readColumns({ text, cells = [], line }: InputRecord, fields: Fields, trim: boolean): Columns {
  if (decodeUtf8(text) === undefined) throw new InputError(`the header row ${notUtf8}`, line)
  return findColumns(trim ? cells.map((cell) => cell.trim()) : cells, fields, line)
}

async function* join(first: Iterable<InputRecord>, rest: Groups): Groups {
  yield first
  yield* rest
}
