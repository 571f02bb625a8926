// Reads a file of rejects as an input: each `text`, once corrected, is a record in its original format.
import { CsvSplitter } from './csv.ts'
import { InputError } from './input-error.ts'
import { NdjsonSplitter } from './ndjson.ts'
import type { InputRecord, Splitter } from './record.ts'

/** Matches the beginning of each line of such a file. */
export const rejectStart = /^\{"line":\d+,"reason":"/

type Reject = { header?: string; text: string }

export class MendedSplitter implements Splitter {
  readonly #lines = new NdjsonSplitter()
  #header: string | undefined

  async push(chunk: Buffer, found: InputRecord[]): Promise<void> {
    const lines: InputRecord[] = []
    this.#lines.push(chunk, lines)
    await this.#take(lines, found)
  }

  async end(found: InputRecord[]): Promise<void> {
    const lines: InputRecord[] = []
    this.#lines.end(lines)
    await this.#take(lines, found)
  }

  async #take(lines: InputRecord[], found: InputRecord[]): Promise<void> {
    for (const record of lines) {
      const { header, text } = readReject(record)
      if (header === undefined) found.push({ ...record, source: text })
      else await this.#takeRow(record.line, { header, text }, found)
    }
  }

  /** Takes the row of a reject, and before the first one its header row. All have the line of their reject. */
  async #takeRow(line: number, { header, text }: Required<Reject>, found: InputRecord[]): Promise<void> {
    const rows: InputRecord[] = []
    const csv = new CsvSplitter()
    const before = this.#header === undefined ? `${header}\n` : ''
    this.#header ??= header
    if (header !== this.#header) throw new InputError('has other columns than the rejects before it', line)
    try {
      await csv.push(Buffer.from(`${before}${text}\n`), rows)
      await csv.end(rows)
    } catch (error) {
      throw new InputError((error as InputError).reason, line)
    }
    for (const row of rows) found.push({ ...row, line })
  }
}

/** Reads a reject. Any other line is taken as a record itself, and the check reports its fault. */
function readReject({ source }: InputRecord): Reject {
  try {
    const { header, text } = JSON.parse(source as string)
    if (typeof text === 'string') return { ...(typeof header === 'string' && { header }), text }
  } catch {}
  return { text: source as string }
}
