// Joins lines into rows of CSV as people have it: a quoted cell may span lines, unless a line is a row.
import type { Fault } from '../../../schemas/problem.ts'
import { faultOf, type Groups, type InputRecord, maxRecordBytes } from './records.ts'

/**
 * `delimiter`: between cells; `quote`: false if quotation marks are text; `trim`: ignore blanks around quoted cells;
 * `isLine`: a line is a row, and quotation marks are text unless they enclose a whole cell.
 */
export type RowForm = { delimiter: string; quote: boolean; trim: boolean; isLine: boolean }

const unclosed = faultOf('a quoted cell begins here and does not end')
const continued = faultOf('a closing quotation mark is followed by text; inside quotation marks, double them')
const inside = faultOf('a quotation mark is inside a cell; quote the whole cell, or use --quote none')

export async function* splitRows(lines: Groups, form: RowForm): Groups {
  const readCells = makeCellReader(form)
  /** The lines of a row with a quoted cell that has not ended, and the index of the line where that begins. */
  let [open, openBytes, openAt] = [[] as InputRecord[], 0, 0]
  let rows: InputRecord[] = []
  const take = (line: InputRecord) => {
    if (open.length === 0 && line.fault) rows.push(line)
    if (open.length === 0 && (line.fault || line.text === '')) return
    open.push(line)
    openBytes += line.text.length
    if (open.length === 1 || line.text.includes('"')) {
      const row = joinLines(open)
      const cells = readCells(row.text)
      if (typeof cells === 'number') openAt = cells
      else if (Array.isArray(cells)) rows.push({ ...row, cells })
      if (Array.isArray(cells)) [open, openBytes] = [[], 0]
      else if (typeof cells === 'object') refuse(1, cells)
    }
    if (openBytes > maxRecordBytes) refuse(openAt + 1, unclosed)
  }
  /** Refuses the first lines of the open row, and reads the others again. */
  const refuse = (count: number, fault: Fault) => {
    const others = open.splice(count)
    rows.push({ ...joinLines(open), line: open.at(-1)?.line ?? 0, fault })
    ;[open, openBytes] = [[], 0]
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
  const [first, last] = [lines[0] as InputRecord, lines.at(-1) as InputRecord]
  if (lines.length === 1) return first
  const text = lines.map((line) => `${line.text}${line === last ? '' : line.eol}`).join('')
  return { ...last, line: first.line, text }
}

/** Makes a reader of the cells of a row. It returns the index of the line where a cell begins that has not ended. */
function makeCellReader({ delimiter, quote, trim, isLine }: RowForm) {
  const blank = trim ? ' *' : ''
  const quoted = new RegExp(`${blank}"([^"]*(?:""[^"]*)*)("?)${blank}`, 'y')
  return (text: string): string[] | number | Fault => {
    if (!quote || !text.includes('"')) return text.split(delimiter)
    const cells: string[] = []
    for (let at = 0; at <= text.length; ) {
      quoted.lastIndex = at
      const [whole = '', cell = '', close] = quoted.exec(text) ?? []
      let end = at + whole.length
      if (close && (end === text.length || text[end] === delimiter)) cells.push(cell.replaceAll('""', '"'))
      else if (whole !== '' && !isLine) return close ? continued : text.slice(0, at).split('\n').length - 1
      else {
        end = text.indexOf(delimiter, at)
        if (end === -1) end = text.length
        cells.push(text.slice(at, end))
        if (!isLine && cells.at(-1)?.includes('"')) return inside
      }
      at = end + 1
    }
    return cells
  }
}
