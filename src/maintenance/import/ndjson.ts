// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import { type Groups, type InputRecord, maxRecordBytes, tooLong } from './record.ts'

export async function* splitLines(chunks: AsyncIterable<Buffer>): Groups {
  let [line, at, rest, cut] = [0, 0, '', 0]
  const take = (whole: string, isOpen: boolean): InputRecord => {
    const isCrlf = whole.endsWith('\r')
    const text = isCrlf ? whole.slice(0, -1) : whole
    const end = at + cut + text.length
    const record: InputRecord = { line: ++line, text, end, eol: isCrlf ? '\r\n' : '\n', isOpen }
    if (cut > 0 || text.length > maxRecordBytes) record.fault = tooLong
    at += cut + whole.length + 1
    cut = 0
    return record
  }
  for await (const chunk of chunks) {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = lines.pop() as string
    yield lines.map((text) => take(text, false)).filter(({ text }) => text !== '')
    // Of an endless line only so much is kept that it is too long.
    const more = Math.max(0, rest.length - maxRecordBytes - 2)
    rest = rest.slice(more)
    cut += more
  }
  if (rest.trim() !== '') yield [take(rest, true)]
}
