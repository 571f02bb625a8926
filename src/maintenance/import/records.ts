// Reads the records of an input in any format, which its beginning shows.
import { RecordCheck } from './check.ts'
import { splitCsv } from './csv.ts'
import type { FieldOptions } from './fields.ts'
import { Prefix, type Reading } from './input.ts'
import { splitArray } from './json-array.ts'
import { splitLines } from './ndjson.ts'
import { InputError, type Splitter } from './record.ts'

const splitters = { ndjson: splitLines, json: splitArray, csv: splitCsv } satisfies Record<string, Splitter>
export type InputFormat = keyof typeof splitters
export const formats = Object.keys(splitters) as InputFormat[]

/** `trim`: removes white space around texts, cells of numbers and column names. */
export type RecordOptions = FieldOptions & { format?: InputFormat | undefined; trim?: boolean }

/** Bytes of the beginning that detection looks at. */
const lookBytes = 1024

/** `header`: the header row of a CSV input; `prefix`: the hash of what was read; `groups`: all other records. */
export type Records = Awaited<ReturnType<typeof readRecords>>

/** Reads up to the first record. Throws InputError when the input has a fault before it. */
export async function readRecords(reading: Reading, options: RecordOptions) {
  const { head, bytes } = reading
  if (/^(fffe|feff)/.test(head.toString('hex', 0, 2))) throw new InputError('is UTF-16, expected UTF-8', 1)
  const format = options.format ?? detectFormat(head)
  const prefix = new Prefix()
  const groups = splitters[format](prefix.follow(bytes), head)
  const [header] = format === 'csv' ? ((await groups.next()).value ?? []) : []
  if (format === 'csv' && !header) throw new InputError('is empty, expected a header row')
  return { ...reading, format, header, prefix, groups, check: new RecordCheck(options, header) }
}

/** Detects the format: `[` begins a JSON array, `{` NDJSON, anything else CSV. Empty input is NDJSON. */
function detectFormat(head: Buffer): InputFormat {
  const text = head.toString('latin1', 0, lookBytes)
  const [first] = text.trimStart()
  if (first === '[') return 'json'
  if (first === '{' || head.length === 0) return 'ndjson'
  if (text.includes('\0'))
    throw new InputError('is not text: expected NDJSON, JSON or CSV, in UTF-8, perhaps in gzip or zstd', 1)
  return 'csv'
}
