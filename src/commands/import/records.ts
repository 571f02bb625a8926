// Splits an input into records: lines of NDJSON, elements of a JSON array, or rows of CSV.
import { createHash } from 'node:crypto'
import { byteOrderMark, chunkBytes, type Form, type Input, InputError } from './input.ts'

/** Maximum size of a record, and maximum distance to the closing quotation mark of a cell. */
const maxRecordBytes = 2 ** 20
const tooLong = `is longer than ${maxRecordBytes / 1024} KiB`

/** A row of CSV; `fault`: of the last line of a record. */
type Row = { cells?: string[]; fault?: string }
/**
 * `line`: line number, from 1, of the start of the record (of the end, if it has a `fault`); `end`: offset of its end
 * in the input, before the line break; `text`: the record, with its line break except in JSON. It has one character per
 * byte (latin1), so that offsets and rejects are exact.
 */
export type InputRecord = Row & { line: number; end: number; text: string }
/**
 * A record found at an offset in a text. `start`: its start, if that is later; `next`: offset of the next record;
 * `isBlank`: not a record, such as an empty line; `refusal`: why the input is refused.
 */
type Found = Row & { start?: number; end: number; next: number; isBlank?: boolean; refusal?: string }
/** Finds the record at an offset, which is followed by more than `maxRecordBytes`, or by the end of the input. */
type Find = (text: string, from: number) => Found

/** `head`: the first chunk of an input, from which the format was detected; `chunks`: the other chunks. */
export type Source = { form: Form; head: Buffer; chunks: Input['chunks'] }

/** Reads the records chunk by chunk. `hashTo`: returns the SHA-256 (hex) of the input up to an offset in this chunk. */
export async function* readRecords({ form, head, chunks }: Source) {
  const find = { ndjson: findLine, json: findElement, csv: makeRowFinder(form) }[form.format]
  const sha256 = createHash('sha256')
  /** The text that is not consumed, its line, its offset in the input, and whether the input ends with it. */
  let [text, line, at, isLast] = [head.toString('latin1'), 1, 0, false]
  let from = form.format === 'json' ? text.indexOf('[') : form.isUtf8 ? byteOrderMark.length : 0
  line += countFeeds(text.slice(0, from))
  do {
    // A record that begins in the first chunk must be complete.
    while (!isLast && text.length <= chunkBytes + maxRecordBytes) {
      const { value } = await chunks.next()
      isLast = value === undefined
      text += value?.toString('latin1') ?? ''
    }
    const records: InputRecord[] = []
    while (from < Math.min(chunkBytes, text.length)) {
      const { start = from, end, next, isBlank = end === start, refusal, ...found } = find(text, from)
      const lineOf = (offset: number) => line + countFeeds(text.slice(from, offset))
      const reason = next - from > maxRecordBytes ? tooLong : refusal
      if (reason) throw new InputError(`line ${lineOf(start)}: ${reason}`)
      if (!isBlank) {
        const record = text.slice(start, form.format === 'json' ? end : next)
        records.push({ ...found, line: lineOf(found.fault ? end : start), end: at + end, text: record })
      }
      line = lineOf(next)
      from = next
    }
    const hashTo = (end: number) => {
      const hash = sha256.copy().update(text.slice(0, end - at), 'latin1')
      return hash.digest('hex')
    }
    yield { records, hashTo }
    sha256.update(text.slice(0, from), 'latin1')
    text = text.slice(from)
    at += from
    from = 0
  } while (!isLast || text !== '')
}

function countFeeds(text: string): number {
  let feeds = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) feeds++
  return feeds
}

const lineEnd = /\r?(?:\n|$)/g

function findLine(text: string, from: number): Found {
  lineEnd.lastIndex = from
  const end = lineEnd.exec(text)?.index ?? text.length
  return { end, next: lineEnd.lastIndex }
}

/** Finds the element of a JSON array after a bracket or comma. It is parsed later. */
function findElement(text: string, from: number): Found {
  const start = from + 1 + text.slice(from + 1).search(/[^ \t\r\n]|$/)
  const rest = { start, end: start, next: text.length }
  if (text[from] === ']')
    return start < text.length ? { ...rest, next: start, refusal: 'text follows the JSON array' } : rest
  let [end, depth] = [start, 0]
  for (let at = start; at < text.length; at++) {
    const char = text.charAt(at)
    const isEnd = depth === 0 && (char === ',' || char === ']')
    if (isEnd) return { start, end, next: at, isBlank: end === start && text[from] === '[' && char === ']' }
    if (char === '"') for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
    if (char === '{' || char === '[') depth++
    if (depth > 0 && (char === '}' || char === ']')) depth--
    if (!' \t\r\n'.includes(char)) end = at + 1
  }
  return { ...rest, refusal: 'the JSON array does not end: the input is truncated' }
}

const unclosedFault = `a quoted cell starts here and does not end, or ${tooLong}`
const insideFault =
  'a quotation mark is inside a cell: enclose the cell in quotation marks and double this one, use --trim if spaces or tabs precede it, or use --quote none'

/**
 * Finds rows of CSV. A quoted cell may span lines, except in files separated by tabs or |. With tabs, quotation marks
 * are literal unless they enclose a whole cell; with |, they are literal in a line that is not valid CSV.
 */
function makeRowFinder({ delimiter, quote, trim }: Form): Find {
  // A no-break space is two bytes.
  const blanks = '(?:[ \\t]|\\xc2\\xa0)*'
  const blank = trim ? blanks : ''
  const between = `\\x${delimiter.charCodeAt(0).toString(16).padStart(2, '0')}`
  // A quoted cell, with its text in a group.
  const inQuotes = `${blank}"([^"]*(?:""[^"]*)*)"${blank}`
  const enclosed = new RegExp(`^${inQuotes}$`)
  // A cell and what ends it: the text of a quoted cell, or a bare cell; then a separator, a line break or the end.
  const cell = new RegExp(`(?:${inQuotes}|([^${between}"\n]*?))(${between}|\r?\n|\r?$)`, 'y')
  // For faults only: any cell that begins with a quotation mark, as with --trim, up to the closing one.
  const quoted = new RegExp(`${blanks}"[^"]*(?:""[^"]*)*`, 'y')
  const beforeCell = new RegExp(`[${between}\n]${blank}$`)
  const unquote = (inner: string) => inner.replaceAll('""', '"')
  const findRow: Find = (text, from) => {
    const cells: string[] = []
    // A longer row has the same fault in every chunk, whatever follows it there.
    const near = text.slice(from, from + maxRecordBytes + 1)
    const isCut = from + near.length < text.length
    for (let at = 0; ; at = cell.lastIndex) {
      cell.lastIndex = quoted.lastIndex = at
      const [, inner, bare = '', separator] = cell.exec(near) ?? []
      if (separator === undefined || (isCut && cell.lastIndex === near.length)) {
        const isQuoted = quoted.test(near)
        const closing = quoted.lastIndex
        // The quotation mark at the bound may be the first of a pair.
        const isUnclosed = isQuoted && closing >= near.length - Number(isCut)
        // Skips the whole quoted cell: its lines are not rows. But a mark that begins another cell does not end this one.
        const isSkipped = isQuoted && !isUnclosed && !beforeCell.test(near.slice(at, closing))
        const line = findLine(text, from + (isSkipped ? closing : at))
        return { ...line, fault: isUnclosed ? unclosedFault : insideFault }
      }
      cells.push(inner === undefined ? bare : unquote(inner))
      const next = from + cell.lastIndex
      if (separator !== delimiter) return { end: next - separator.length, next, cells }
    }
  }
  return (text, from) => {
    const line = findLine(text, from)
    const whole = text.slice(from, line.end)
    const parts = whole.split(delimiter)
    if (quote === 'none' || !whole.includes('"')) return { ...line, cells: parts }
    if (delimiter === '\t')
      return { ...line, cells: parts.map((part) => part.replace(enclosed, (_, inner) => unquote(inner))) }
    if (delimiter !== '|') return findRow(text, from)
    const { fault, cells = [] } = findRow(whole, 0)
    return { ...line, cells: fault === undefined ? cells : parts }
  }
}
