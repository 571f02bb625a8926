// CSV (RFC 4180) by csv-parse: a header row, then a row per plant, as spreadsheets write them. Empty lines are skipped.
import { type CsvError, parse } from 'csv-parse/sync'
import { InputError } from './input-error.ts'
import { splitLines } from './ndjson.ts'
import { type Groups, type InputRecord, maxRecordBytes, tooLong } from './record.ts'

/** Our messages for the errors of csv-parse. */
const reasons: Record<string, string> = {
  CSV_INVALID_CLOSING_QUOTE: 'a closing quote is followed by more; inside quotes, double them',
  INVALID_OPENING_QUOTE: 'a quote is in the middle of a cell; quote the whole cell',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
}
const delimiters = [',', ';', '\t']

/** Splits CSV into rows; the first is the header. */
export async function* splitCsv(texts: AsyncIterable<string>): Groups {
  /** The beginning of a row with line feeds in quotes. */
  let begun: InputRecord[] = []
  let delimiter: string | undefined
  /** A first line like `sep=;`, by which Excel knows the delimiter. */
  let sep: InputRecord | undefined
  function* read(joined: InputRecord[]) {
    const rows = joined.filter(({ text }) => text !== '')
    if (delimiter === undefined && !sep && /^sep=.$/i.test(rows[0]?.text ?? '')) sep = rows.shift()
    const [header] = rows
    if (delimiter === undefined && header) {
      delimiter = sep?.text.at(-1) ?? findDelimiter(header.text)
      for (const row of parseRows([header], delimiter)) yield { ...row, text: textOf(sep) + row.text }
      rows.shift()
    }
    yield* parseRows(rows, delimiter)
  }
  for await (const lines of splitLines(texts)) {
    const { rows, isOpen } = joinLines(begun.concat(lines))
    begun = isOpen ? rows.splice(-1) : []
    yield read(rows)
  }
  yield read(begun)
}

/** A record with its end of line. */
export function textOf(record: InputRecord | undefined): string {
  return record === undefined ? '' : record.text + record.eol
}

/** The delimiter that makes the most columns of a header row. */
function findDelimiter(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '')
  const widths = delimiters.map((delimiter) => bare.split(delimiter).length)
  return delimiters[widths.indexOf(Math.max(...widths))] as string
}

/** Joins lines into rows. `isOpen`: the last row goes on; one that is too long does not, as reading ends there. */
function joinLines(lines: InputRecord[]): { rows: InputRecord[]; isOpen: boolean } {
  const rows: InputRecord[] = []
  let open: InputRecord | undefined
  for (const line of lines) {
    const isOpen = hasOddQuotes(line.text) !== (open !== undefined)
    const row = open ? Object.assign(open, line, { line: open.line, text: textOf(open) + line.text }) : line
    if (!open) rows.push(row)
    if (row.text.length > maxRecordBytes) row.fault = tooLong
    open = isOpen && !row.fault ? row : undefined
  }
  return { rows, isOpen: open !== undefined }
}

/** True for a line in which a row begins or ends to be open: quotes inside quotes are doubled. */
function hasOddQuotes(line: string): boolean {
  let isOdd = false
  for (let i = line.indexOf('"'); i !== -1; i = line.indexOf('"', i + 1)) isOdd = !isOdd
  return isOdd
}

/** Adds the cells to rows. Throws InputError after those before a fault. */
function* parseRows(rows: InputRecord[], delimiter = ','): Generator<InputRecord> {
  let parsed = 0
  const take = (cells: string[]): undefined => {
    const row = rows[parsed] as InputRecord
    if (row.fault) throw new InputError(`${tooLong.detail}; is a quote left open?`, row.line)
    row.cells = cells
    parsed++
  }
  let fault: CsvError | InputError | undefined
  try {
    const bytes = Buffer.from(rows.map(({ text }) => text).join('\n'), 'latin1')
    parse(bytes, { delimiter, record_delimiter: '\n', relax_column_count: true, on_record: take })
  } catch (error) {
    fault = error as CsvError | InputError
  }
  yield* rows.slice(0, parsed)
  if (fault instanceof InputError) throw fault
  /* c8 ignore next: csv-parse has no other fault with these options; a later version may */
  if (fault) throw new InputError(reasons[fault.code] ?? fault.message, rows[parsed]?.line)
}
