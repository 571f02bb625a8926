// CSV (RFC 4180) by csv-parse: a header row, then a row per plant, as spreadsheets write them. Empty lines are skipped.
import { type CsvError, parse } from 'csv-parse'
import { type Groups, InputError, type InputRecord, maxRecordBytes, Rest, tooLong } from './record.ts'

/** Our messages for the errors of csv-parse. */
const reasons: Record<string, string> = {
  CSV_INVALID_CLOSING_QUOTE: 'a closing quote is followed by more; inside quotes, double them',
  INVALID_OPENING_QUOTE: 'a quote is in the middle of a cell; quote the whole cell',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
}
const delimiters = [',', ';', '\t']

/** Splits CSV into rows. The first group is the header row alone, with a line like `sep=;` before it. */
export async function* splitCsv(chunks: AsyncIterable<Buffer>, head: Buffer): Groups {
  const start = head.toString('latin1')
  const sep = /^\s*sep=(.)\r?\n/i.exec(start)
  const rows: InputRecord[] = []
  const rest = new Rest()
  let before = ''
  let hasHeader = false
  const dropEmptyLines = () => rest.drop(/^(\r?\n)*/.exec(rest.text)?.[0].length as number)
  const checkLength = (length: number) => {
    if (length > maxRecordBytes) throw new InputError(`${tooLong.detail}; is a quote left open?`, rest.line)
  }
  const take = (cells: string[], { bytes, records }: { bytes: number; records: number }): null => {
    dropEmptyLines()
    checkLength(bytes - rest.offset)
    const { line } = rest
    const row = rest.drop(bytes - rest.offset)
    if (sep && records === 1) {
      before = row
      return null
    }
    const [eol = ''] = /\r?\n$/.exec(row.slice(-2)) ?? []
    const end = rest.offset - eol.length
    const bare = before + row.slice(0, row.length - eol.length)
    before = ''
    rows.push({ line, text: bare, end, eol: eol === '\r\n' ? eol : '\n', isOpen: eol === '', cells })
    return null
  }
  const parser = parse({
    delimiter: sep?.[1] ?? findDelimiter(start),
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    on_record: take,
  })
  parser.on('error', () => {})
  const write = async function* (chunk: Buffer | undefined): Groups {
    rest.text += chunk?.toString('latin1') ?? ''
    const fault = await new Promise<CsvError | InputError | null | undefined>((resolve) =>
      chunk ? parser.write(chunk, resolve as () => void) : parser.end(resolve as () => void),
    )
    if (!hasHeader && rows.length > 0) {
      hasHeader = true
      yield rows.splice(0, 1)
    }
    if (rows.length > 0) yield rows.splice(0)
    dropEmptyLines()
    if (fault instanceof InputError) throw fault
    /* c8 ignore next: csv-parse has no other fault with these options; a later version may */
    if (fault) throw new InputError(reasons[fault.code] ?? fault.message, rest.line)
    checkLength(rest.text.length)
  }
  for await (const chunk of chunks) yield* write(chunk)
  yield* write(undefined)
}

/** The delimiter that makes the most columns of a header row. */
function findDelimiter(start: string): string {
  const [header = ''] = start
    .replaceAll(/"[^"]*"/g, '')
    .trimStart()
    .split('\n', 1)
  const widths = delimiters.map((delimiter) => header.split(delimiter).length)
  return delimiters[widths.indexOf(Math.max(...widths))] as string
}
