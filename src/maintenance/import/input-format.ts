// Detects the format of an input by its beginning.
import { splitCsv } from './csv.ts'
import { InputError } from './input-error.ts'
import { splitArray } from './json-array.ts'
import { splitNdjson } from './ndjson.ts'
import type { Splitter } from './record.ts'

export const splitters = { ndjson: splitNdjson, json: splitArray, csv: splitCsv } satisfies Record<
  string,
  Splitter
>
export type Format = keyof typeof splitters
export const formats = Object.keys(splitters) as Format[]

/** Bytes of the beginning that detection looks at. */
const lookBytes = 1024

/** Detects the format: `[` begins a JSON array, `{` NDJSON, anything else CSV. Empty input is NDJSON. */
export function detectFormat(head: Buffer): Format {
  const text = head.toString('latin1', 0, lookBytes)
  const [first] = text.trimStart()
  if (first === '[') return 'json'
  if (first === '{' || head.length === 0) return 'ndjson'
  if (text.includes('\0'))
    throw new InputError('is not text: expected NDJSON, JSON or CSV, in UTF-8, perhaps in gzip or zstd', 1)
  return 'csv'
}
