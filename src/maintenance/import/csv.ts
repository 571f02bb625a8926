// CSV (RFC 4180) by csv-parse: a header row, then a row per plant. Empty lines are skipped.
import { type CsvError, type InfoRecord, type Parser, parse } from 'csv-parse'
import { InputError } from './input-error.ts'
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
  readonly #parser: Parser
  #found: InputRecord[] = []
  /** Line of the next row: csv-parse counts a CRLF inside quotes twice. */
  #line = 1
  #emptyLines = 0
  /** The unread rest with the last chunk, its offset in the input, and the offset of the next row within it. */
  #read = Buffer.alloc(0)
  #start = 0
  #next = 0

  constructor() {
    this.#parser = parse({
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      skip_empty_lines: true,
      on_record: (cells: string[], info: InfoRecord) => this.#take(cells, info),
    })
    // Errors are reported by the call that caused them.
    this.#parser.on('error', () => {})
  }

  async push(chunk: Buffer, found: InputRecord[]): Promise<void> {
    this.#found = found
    this.#read = Buffer.concat([this.#read.subarray(this.#next), chunk])
    this.#start += this.#next
    this.#next = 0
    await this.#wait((done) => this.#parser.write(chunk, done))
    while (this.#read[this.#next] === 0x0a || this.#read[this.#next] === 0x0d) this.#next++
    if (this.#read.toString('utf8', this.#next).length > maxRecordLength)
      throw new InputError(tooLong, this.#line)
  }

  end(found: InputRecord[]): Promise<void> {
    this.#found = found
    this.#parser.resume()
    return this.#wait((done) => this.#parser.once('error', done).once('end', done).end())
  }

  async #wait(work: (done: (error?: Error | null) => void) => unknown): Promise<void> {
    const error = await new Promise<Error | null | undefined>((resolve) => work(resolve))
    if (!error) return
    if (error instanceof InputError) throw error
    /* c8 ignore next: csv-parse has no other fault with these options; a later version may */
    throw new InputError(reasons[(error as CsvError).code] ?? error.message, this.#line)
  }

  /** Takes a row. Returning nothing keeps it out of csv-parse's own queue. */
  #take(cells: string[], { bytes, empty_lines }: InfoRecord): undefined {
    this.#line += empty_lines - this.#emptyLines
    this.#emptyLines = empty_lines
    const end = bytes - this.#start
    const text = this.#read.toString('utf8', this.#next, end).replace(/^[\r\n]+|\r?\n$/g, '')
    this.#next = end
    if (text.length > maxRecordLength) throw new InputError(tooLong, this.#line)
    this.#found.push({ line: this.#line, source: cells, text })
    this.#line++
    for (const cell of cells)
      for (let i = cell.indexOf('\n'); i !== -1; i = cell.indexOf('\n', i + 1)) this.#line++
  }
}
