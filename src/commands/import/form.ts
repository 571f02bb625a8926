// Detects the form of an input by its beginning. Other forms are named, with a command that converts them.
import { NewPlant } from '../../../schemas/plant.ts'
import { attempt } from '../../attempt.ts'
import { byteOrderMark, InputError } from './input.ts'

/** `map`: member or column names by field, where they differ; `quote`: `none` if quotation marks are text. */
export type Form = {
  format: 'ndjson' | 'json' | 'csv'
  map: Partial<Record<keyof NewPlant, string>>
  ignoreUnknown: boolean
  delimiter: string
  quote: string
  trim: boolean
}
/** A mapping implies `ignoreUnknown`. */
export type FormOptions = Partial<Omit<Form, 'format'>>

const delimiters = [',', ';', '|', '\t']
export const endsInCr = `has lines that end in CR; this converts it: tr '\\r' '\\n' < FILE`
/** The beginnings of other forms. A damaged first line is not one of them: it is reported as a fault. */
const others: [beginning: RegExp, reason: string][] = [
  [/^\s*$/, 'is empty, or begins with 128 KiB of white space'],
  [/^PK\x03\x04/, 'is a ZIP archive (XLSX, ODS): save the sheet as CSV (UTF-8), or unpack it: unzip -p FILE'],
  [/^(\xff\xfe|[^\0\xfe]\0)/, 'is UTF-16; this converts it: iconv -f utf-16le -t utf-8 FILE'],
  [/^(\xfe\xff|\0[^\0])/, 'is UTF-16; this converts it: iconv -f utf-16be -t utf-8 FILE'],
  [/^(?=[^\n]*\n?$)[^[\n][^\n]*\r(?!\n|$)[^\n]*\n?/, endsInCr],
  [
    /^\s*\{(?:[^[\]}]|\}(?!\s*\{))*"([^"'\\]*)"\s*:\s*\[\s*[{\]]/,
    `is an object that holds the array "$1"; this converts it: jq -c '.. | .["$1"]? | arrays | .[]' FILE`,
  ],
  [/^\s*\{[^\n]*\},\r?\n/, `has lines that end in a comma; this converts it: sed 's/,[[:space:]]*$//' FILE`],
  [/^\s*\{([^\n]*[[{,])?[ \t\r]*\n/, 'is JSON over several lines; this converts it: jq -c . FILE'],
]

/** `head`: the first bytes of the text. Throws InputError. */
export function detectForm(head: Buffer, options: FormOptions): Form {
  const text = head.toString('latin1').replace(byteOrderMark, '')
  const { map = {}, ignoreUnknown = options.map !== undefined, quote = '', trim = false } = options
  for (const [beginning, reason] of others) {
    const [begun] = beginning.exec(text) ?? []
    if (begun !== undefined && !beginsWithRecord(text, map))
      throw new InputError(begun.replace(beginning, reason))
  }
  const [first] = text.trimStart()
  const format = first === '[' ? 'json' : first === '{' ? 'ndjson' : 'csv'
  const delimiter = options.delimiter === 'tab' ? '\t' : (options.delimiter ?? findDelimiter(text))
  return { format, map, ignoreUnknown, delimiter, quote, trim }
}

/** Whether the first line is an object with the required members of a plant, or is followed by another object. */
function beginsWithRecord(latin1: string, map: Form['map']): boolean {
  const [line = '', next = ''] = latin1.trimStart().split('\n', 2)
  const value = attempt(() => JSON.parse(Buffer.from(line, 'latin1').toString()))
  const hasMember = (name: string) => Object.hasOwn(Object(value), map[name as keyof NewPlant] ?? name)
  return value !== undefined && (next.startsWith('{') || NewPlant.required?.every(hasMember) === true)
}

/** Finds the delimiter that a line like `sep=;` names, or that splits the header row into the most columns. */
function findDelimiter(text: string): string {
  const [, named] = /^sep=(.)\r?\n/i.exec(text) ?? []
  const [header = ''] = text.trimStart().split('\n', 1)
  const bare = header.replaceAll(/"[^"]*"/g, '')
  const columns = (delimiter: string) => bare.split(delimiter).length
  return named ?? (delimiters.toSorted((one, other) => columns(other) - columns(one))[0] as string)
}
