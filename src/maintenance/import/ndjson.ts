// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import { type Groups, type InputRecord, maxRecordBytes, tooLong } from './record.ts'

export async function* splitNdjson(texts: AsyncIterable<string>): Groups {
  for await (const lines of splitLines(texts)) yield lines.filter(({ text }) => text !== '')
}

/** Splits texts into lines, without their ends. */
export async function* splitLines(texts: AsyncIterable<string>): AsyncGenerator<InputRecord[]> {
  let [line, at, rest, cut] = [0, 0, '', 0]
  const take = (text: string, isOpen: boolean): InputRecord => {
    const end = at + cut + text.length
    const isCrlf = text.endsWith('\r')
    const record: InputRecord = {
      line: ++line,
      text: isCrlf ? text.slice(0, -1) : text,
      end: isCrlf ? end - 1 : end,
      eol: isCrlf ? '\r\n' : '\n',
      isOpen,
    }
    if (cut > 0 || record.text.length > maxRecordBytes) record.fault = tooLong
    at = end + 1
    cut = 0
    return record
  }
  for await (const piece of texts) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() as string
    yield lines.map((text) => take(text, false))
    // Of an endless line only so much is kept that it is too long.
    const more = Math.max(0, rest.length - maxRecordBytes - 2)
    rest = rest.slice(more)
    cut += more
  }
  if (rest.trim() !== '') yield [take(rest, true)]
}
