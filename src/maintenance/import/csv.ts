// CSV (RFC 4180) by csv-parse: a header row, then a row per plant. Empty lines are skipped.
import { type CsvError, parse } from 'csv-parse/sync'
import { InputError } from './input-error.ts'
import { splitLines, trimReturn } from './ndjson.ts'
import { type Groups, type InputRecord, maxRecordLength } from './record.ts'

/** Our messages for the errors of csv-parse. */
const reasons: Record<string, string> = {
  CSV_INVALID_CLOSING_QUOTE: 'a closing quote is followed by more; inside quotes, double them',
  INVALID_OPENING_QUOTE: 'a quote is in the middle of a cell; quote the whole cell',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
}
const tooLong = `is longer than ${maxRecordLength / 1024} KiB; is a quote left open?`

/** Splits CSV into rows; the first is the header. */
export async function* splitCsv(texts: AsyncIterable<string>): Groups {
  /** The beginning of a row with line feeds in quotes. */
  let begun: InputRecord[] = []
  for await (const lines of splitLines(texts)) {
    const { rows, isOpen } = joinLines(begun.concat(lines))
    begun = isOpen ? rows.splice(-1) : []
    yield parseRows(rows)
  }
  yield parseRows(begun)
}

/** Joins lines into rows. `isOpen`: the last row goes on; one that is too long does not, as parsing ends there. */
export function joinLines(lines: InputRecord[]): { rows: InputRecord[]; isOpen: boolean } {
  const rows: InputRecord[] = []
  let open: InputRecord | undefined
  for (const line of lines) {
    const row = open ?? line
    if (open) row.text += `\n${line.text}`
    else rows.push(row)
    const isOpen = hasOddQuotes(line.text) !== (open !== undefined)
    open = isOpen && row.text.length <= maxRecordLength ? row : undefined
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
export function* parseRows(joined: InputRecord[]): Generator<InputRecord> {
  for (const row of joined) row.text = trimReturn(row.text)
  const rows = joined.filter(({ text }) => text !== '')
  let parsed = 0
  const take = (cells: string[]): undefined => {
    const row = rows[parsed] as InputRecord
    if (row.text.length > maxRecordLength) throw new InputError(tooLong, row.line)
    row.cells = cells
    parsed++
  }
  let fault: CsvError | InputError | undefined
  try {
    const text = rows.map(({ text }) => text).join('\n')
    parse(text, { record_delimiter: '\n', relax_column_count: true, on_record: take })
  } catch (error) {
    fault = error as CsvError | InputError
  }
  yield* rows.slice(0, parsed)
  if (fault instanceof InputError) throw fault
  /* c8 ignore next: csv-parse has no other fault with these options; a later version may */
  if (fault) throw new InputError(reasons[fault.code] ?? fault.message, rows[parsed]?.line)
}
