// CSV (RFC 4180) by csv-parse: a header row, then a row per plant. Empty lines are skipped.
import { type CsvError, parse } from 'csv-parse/sync'
import { InputError } from './input-error.ts'
import { LineSplitter, trimReturn } from './lines.ts'
import { type InputRecord, maxRecordLength, type Splitter } from './record.ts'

/** Our messages for the errors of csv-parse. */
const reasons: Record<string, string> = {
  CSV_INVALID_CLOSING_QUOTE: 'a closing quote is followed by more; inside quotes, double them',
  INVALID_OPENING_QUOTE: 'a quote is in the middle of a cell; quote the whole cell',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
}
const tooLong = `is longer than ${maxRecordLength / 1024} KiB; is a quote left open?`

/** Splits CSV into rows; the first is the header. */
export class CsvSplitter implements Splitter {
  readonly #lines = new LineSplitter()
  /** The row that the next line belongs to, if a quote is open. */
  #begun: InputRecord | undefined;

  *split(piece: string, isLast: boolean): Generator<InputRecord> {
    const rows: InputRecord[] = []
    for (const line of this.#lines.split(piece, isLast)) {
      const isOpen = hasOddQuotes(line) !== (this.#begun !== undefined)
      const row = this.#begun ?? { line: this.#lines.line, text: '' }
      row.text += line
      this.#begun = undefined
      if (isOpen && row.text.length <= maxRecordLength) {
        row.text += '\n'
        this.#begun = row
        continue
      }
      row.text = trimReturn(row.text)
      if (row.text !== '') rows.push(row)
    }
    if (isLast && this.#begun) rows.push(this.#begun)
    yield* parseRows(rows)
  }
}

/** True for a line in which a row begins or ends to be open: quotes inside quotes are doubled. */
function hasOddQuotes(line: string): boolean {
  let isOdd = false
  for (let i = line.indexOf('"'); i !== -1; i = line.indexOf('"', i + 1)) isOdd = !isOdd
  return isOdd
}

/** Adds the cells to rows. */
function* parseRows(rows: InputRecord[]): Generator<InputRecord> {
  const parsed: InputRecord[] = []
  const take = (cells: string[]): undefined => {
    const row = rows[parsed.length] as InputRecord
    if (row.text.length > maxRecordLength) throw new InputError(tooLong, row.line)
    parsed.push({ ...row, cells })
  }
  let fault: CsvError | InputError | undefined
  try {
    const text = rows.map(({ text }) => text).join('\n')
    parse(text, { record_delimiter: '\n', relax_column_count: true, on_record: take })
  } catch (error) {
    fault = error as CsvError | InputError
  }
  yield* parsed
  if (fault instanceof InputError) throw fault
  /* c8 ignore next: csv-parse has no other fault with these options; a later version may */
  if (fault) throw new InputError(reasons[fault.code] ?? fault.message, rows[parsed.length]?.line)
}
