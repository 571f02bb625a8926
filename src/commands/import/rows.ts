// Joins lines into rows of CSV (RFC 4180), as people have it: a quoted cell may span lines, unless a line is a row.
import { faultOf, type Groups, type InputRecord, maxRecordBytes } from './records.ts'

/**
 * `delimiter`: between cells; `quote`: false if quotation marks are text; `trim`: remove blanks around quoted cells;
 * `isLine`: a line is a row, and quotation marks are text unless they enclose a whole cell.
 */
export type RowForm = { delimiter: string; quote: boolean; trim: boolean; isLine: boolean }

const unclosed = faultOf('a quoted cell begins here and does not end')
const continued = faultOf('a closing quotation mark is followed by text; inside quotation marks, double them')
const inside = faultOf('a quotation mark is inside a cell; quote the whole cell, or use --quote none')

export async function* splitRows(lines: Groups, form: RowForm): Groups {
  /** The lines of a row with a quoted cell that has not ended, and where that begins. */
  let open: InputRecord[] = []
  let [openBytes, openAt] = [0, 0]
  let rows: InputRecord[] = []
  const take = (line: InputRecord) => {
    if (open.length === 0 && (line.fault || line.text === '')) {
      if (line.fault) rows.push(line)
      return
    }
    open.push(line)
    openBytes += line.text.length
    if (open.length === 1 || line.text.includes('"')) {
      const row = joinLines(open)
      const cells = readCells(row.text, form)
      if (Array.isArray(cells)) {
        rows.push({ ...row, cells })
        open = []
        openBytes = 0
      } else if (typeof cells === 'number') openAt = cells
      else refuse(1, cells)
    }
    if (openBytes > maxRecordBytes) refuse(openAt + 1, unclosed)
  }
  /** Refuses the first lines of the open row, and reads the others again. */
  const refuse = (count: number, fault: InputRecord['fault']) => {
    const [refused, others] = [open.slice(0, count), open.slice(count)]
    open = []
    openBytes = 0
    rows.push({ ...joinLines(refused), line: refused.at(-1)?.line as number, ...(fault && { fault }) })
    others.forEach(take)
  }
  for await (const group of lines) {
    group.forEach(take)
    yield rows
    rows = []
  }
  while (open.length > 0) refuse(openAt + 1, unclosed)
  yield rows
}

function joinLines(lines: InputRecord[]): InputRecord {
  const last = lines.at(-1) as InputRecord
  if (lines.length === 1) return last
  const before = lines.slice(0, -1).map(({ text, eol }) => `${text}${eol}`)
  return { ...last, line: lines[0]?.line as number, text: before.join('') + last.text }
}

/** Reads the cells of a row. A number: of the line, counted from 0, where a cell begins that has not ended. */
function readCells(text: string, { delimiter, quote, trim, isLine }: RowForm) {
  if (!quote || !text.includes('"')) return text.split(delimiter)
  const skipBlanks = (from: number) => {
    let at = from
    while (trim && text[at] === ' ') at++
    return at
  }
  const cells: string[] = []
  for (let at = 0; ; ) {
    const start = skipBlanks(at)
    if (text[start] === '"') {
      const end = findClosing(text, start + 1)
      const after = skipBlanks(end + 1)
      if (end !== -1 && (after === text.length || text[after] === delimiter)) {
        cells.push(text.slice(start + 1, end).replaceAll('""', '"'))
        if (after === text.length) return cells
        at = after + 1
        continue
      }
      if (!isLine) return end === -1 ? text.slice(0, start).split('\n').length - 1 : continued
    }
    const next = text.indexOf(delimiter, at)
    const cell = next === -1 ? text.slice(at) : text.slice(at, next)
    if (!isLine && cell.includes('"')) return inside
    cells.push(cell)
    if (next === -1) return cells
    at = next + 1
  }
}

function findClosing(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 2))
    if (text[at + 1] !== '"') return at
  return -1
}
