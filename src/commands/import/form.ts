// Detects the form of an input by its beginning. Other forms are named, with a command that converts them.
import type { NewPlant } from '../../../schemas/plant.ts'
import { InputError } from './records.ts'
import type { RowForm } from './rows.ts'

export const formats = ['ndjson', 'json', 'csv'] as const
type Format = (typeof formats)[number]

/** `map`: names of members or columns that are not those of their fields; it implies `ignoreUnknown`. */
type FieldOptions = { map?: Partial<Record<keyof NewPlant, string>>; ignoreUnknown?: boolean }
export type FormOptions = FieldOptions & {
  format?: Format
  delimiter?: string
  quote?: string
  trim?: boolean
}
export type Form = FieldOptions & RowForm & { format: Format }

const delimiters = [',', ';', '|', '\t']
export const notUtf8 =
  'is not UTF-8; Excel saves CSV in Windows-1252, which this converts: iconv -f windows-1252 -t utf-8 FILE'

const zip =
  'is a ZIP archive, as XLSX and ODS are: save the sheet as CSV (UTF-8), or unpack it: unzip -p FILE'
/** The beginnings of other forms. A damaged first line is none: it is left to be a fault. */
const others: [beginning: RegExp, reason: string, format?: Format][] = [
  [/^\s*$/, 'is empty'],
  [/^PK\x03\x04/, zip],
  [/^(\xff\xfe|[^\0\xfe]\0)/, 'is UTF-16; this converts it: iconv -f utf-16le -t utf-8 FILE'],
  [/^(\xfe\xff|\0[^\0])/, 'is UTF-16; this converts it: iconv -f utf-16be -t utf-8 FILE'],
  [/^[\s\S]{0,1000}[\0\x1a]/, 'is not text: expected NDJSON, JSON or CSV', 'csv'],
  [/^[^[\n][^\n]*\r(?!\n|$)[^\n]*$/, `has lines that end in CR; this converts it: tr '\\r' '\\n' < FILE`],
  [
    /^\s*\{[^[\]{}]*"([^"\\]*)"\s*:\s*\[\s*[{\]]/,
    `is an object that holds the array "$1"; this converts it: jq -c '.["$1"][]' FILE`,
    'ndjson',
  ],
  [/^\s*\{([^\n]*[[{,])?[ \t\r]*\n/, 'is JSON over several lines; this converts it: jq -c . FILE', 'ndjson'],
]

/** `head`: the first bytes of the text. Throws InputError. */
export function detectForm(head: Buffer, options: FormOptions): Form {
  const text = head.toString('latin1')
  const [first] = text.trimStart()
  const format = options.format ?? (first === '[' ? 'json' : first === '{' ? 'ndjson' : 'csv')
  for (const [beginning, reason, only = format] of others) {
    const [begun] = (only === format && beginning.exec(text)) || []
    if (begun !== undefined) throw new InputError(begun.replace(beginning, reason))
  }
  const delimiter = options.delimiter ?? findDelimiter(text)
  const isLine = delimiter === '\t' || delimiter === '|'
  return {
    ...options,
    format,
    delimiter,
    quote: options.quote !== 'none',
    trim: options.trim ?? false,
    isLine,
  }
}

/** Finds the delimiter that a line like `sep=;` names, or that makes the most columns of the header row. */
function findDelimiter(text: string): string {
  const [, named] = /^sep=(.)\r?\n/i.exec(text) ?? []
  const [header = ''] = text
    .trimStart()
    .replaceAll(/"[^"]*"/g, '')
    .split('\n', 1)
  const widths = delimiters.map((delimiter) => header.split(delimiter).length)
  return named ?? (delimiters[widths.indexOf(Math.max(...widths))] as string)
}
