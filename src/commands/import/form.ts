// Detects the form of an input by its beginning. Forms that cannot be imported are named, with a command that converts them.
import { InputError } from './records.ts'
import type { RowForm } from './rows.ts'

export const formats = ['ndjson', 'json', 'csv'] as const

export type FormOptions = {
  format?: (typeof formats)[number]
  delimiter?: string
  quote?: string
  trim?: boolean
}
export type Form = RowForm & { format: (typeof formats)[number] }

const delimiters = [',', ';', '|', '\t']
export const notUtf8 =
  'is not UTF-8; Excel saves CSV in Windows-1252, which this converts: iconv -f windows-1252 -t utf-8 FILE'

/** `head`: the first bytes, decompressed. Throws InputError. */
export function detectForm(head: Buffer, { format, delimiter, quote, trim = false }: FormOptions): Form {
  const text = head.toString('latin1')
  const isLines = (format ?? detectFormat(text)) !== 'json'
  if (isLines && /\r(?!\n|$)/.test(text) && !text.includes('\n'))
    throw new InputError(`has lines that end in CR; this converts it: tr '\\r' '\\n' < FILE`)
  const chosen = delimiter ?? findDelimiter(text)
  const isLine = chosen === '\t' || chosen === '|'
  return { format: format ?? detectFormat(text), delimiter: chosen, quote: quote !== 'none', trim, isLine }
}

/** `[` begins a JSON array, `{` NDJSON, anything else CSV. */
function detectFormat(text: string): Form['format'] {
  if (text.trim() === '') throw new InputError('is empty')
  if (text.startsWith('PK\x03\x04'))
    throw new InputError(
      'is a ZIP archive, as XLSX and ODS are: save the sheet as CSV (UTF-8), or unpack it: unzip -p FILE',
    )
  if (/^(\xff\xfe|\xfe\xff|[^\0]\0|\0[^\0])/.test(text))
    throw new InputError(
      `is UTF-16; this converts it: iconv -f ${/^(\xff|[^\0\xfe]\0)/.test(text) ? 'utf-16le' : 'utf-16be'} -t utf-8 FILE`,
    )
  const [first] = text.trimStart()
  if (first === '[') return 'json'
  if (first === '{') refuseLongJson(text.trimStart())
  if (first === '{') return 'ndjson'
  if (/[\0\x1a]/.test(text.slice(0, 1024))) throw new InputError('is not text: expected NDJSON, JSON or CSV')
  return 'csv'
}

/** Refuses JSON that is not one object per line. A damaged first line is left to be a fault of its own. */
function refuseLongJson(text: string): void {
  const [line = ''] = text.split('\n', 1)
  const isOpen = /^[^\n]*[[{,]\s*\n/.test(text) || !text.includes('\n')
  const isOnly = isJson(line) && text.trimEnd() === line.trimEnd() && !('name' in JSON.parse(line))
  const [, array] = /^\{[^[\]{}]*"([^"\\]*)"\s*:\s*\[\s*[{\]]/.exec(text) ?? []
  if (array !== undefined && (isOnly || (isOpen && !isJson(line))))
    throw new InputError(
      `is an object that holds the array "${array}"; this converts it: jq -c '.["${array}"][]' FILE`,
    )
  if (!isJson(line) && isOpen && text.includes('\n'))
    throw new InputError('is JSON over several lines; this converts it: jq -c . FILE')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Finds the delimiter that a line like `sep=;` names, or that makes the most columns of the header row. */
function findDelimiter(text: string): string {
  const [, named] = /^sep=(.)\r?\n/i.exec(text) ?? []
  const [header = ''] = text
    .replaceAll(/"[^"]*"/g, '')
    .trimStart()
    .split('\n', 1)
  const widths = delimiters.map((delimiter) => header.split(delimiter).length)
  return named ?? (delimiters[widths.indexOf(Math.max(...widths))] as string)
}
