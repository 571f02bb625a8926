// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import type { Fault } from '../../../schemas/problem.ts'
import { type Groups, type InputRecord, maxRecordLength } from './record.ts'

const fault: Fault = { code: 'length', detail: `is longer than ${maxRecordLength / 1024} KiB`, pointer: '' }

export async function* splitNdjson(texts: AsyncIterable<string>): Groups {
  for await (const lines of splitLines(texts)) yield readLines(lines)
}

function* readLines(lines: InputRecord[]): Generator<InputRecord> {
  for (const record of lines) {
    record.text = trimReturn(record.text)
    if (record.text.length > maxRecordLength)
      yield { ...record, text: record.text.slice(0, maxRecordLength), fault }
    else if (record.text !== '') yield record
  }
}

/** Splits texts into lines, without their line feeds. */
export async function* splitLines(texts: AsyncIterable<string>): AsyncGenerator<InputRecord[]> {
  let [line, rest] = [0, '']
  for await (const piece of texts) {
    const lines = (rest + piece).split('\n')
    // Of an endless line only so much is kept that it is too long, whatever its end.
    rest = (lines.pop() as string).slice(0, maxRecordLength + 2)
    yield lines.map((text) => ({ line: ++line, text }))
  }
  if (rest !== '') yield [{ line: line + 1, text: rest }]
}

/** Removes the carriage return before a line feed. */
export function trimReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}
