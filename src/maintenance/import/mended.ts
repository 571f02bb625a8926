// Reads a file of rejects as an input: each `text`, once corrected, is a record in its original format.
import { joinLines, parseRows } from './csv.ts'
import { InputError } from './input-error.ts'
import { splitNdjson } from './ndjson.ts'
import type { Groups, InputRecord } from './record.ts'

/** Matches the beginning of each line of such a file. */
export const rejectStart = /^\{"line":\d+,"reason":"/

export async function* splitMended(texts: AsyncIterable<string>): Groups {
  let columns: string | undefined
  /** Yields the row of a reject, and before the first one its header row. All have the line of their reject. */
  function* readRow(line: number, header: string, text: string): Generator<InputRecord> {
    const isFirst = columns === undefined
    columns ??= header
    if (header !== columns) throw new InputError('has other columns than the rejects before it', line)
    const lines = (isFirst ? `${header}\n${text}` : text).split('\n')
    yield* parseRows(joinLines(lines.map((text) => ({ line, text }))).rows)
  }
  function* readRejects(records: Iterable<InputRecord>): Generator<InputRecord> {
    for (const record of records) {
      const { header, text } = readReject(record.text)
      if (header === undefined) yield { ...record, text }
      else yield* readRow(record.line, header, text)
    }
  }
  for await (const records of splitNdjson(texts)) yield readRejects(records)
}

/** Reads a reject. Any other line is taken as a record itself, and the check reports its fault. */
function readReject(line: string): { header?: string; text: string } {
  try {
    const { header, text } = JSON.parse(line)
    if (typeof text === 'string') return { ...(typeof header === 'string' && { header }), text }
  } catch {}
  return { text: line }
}
