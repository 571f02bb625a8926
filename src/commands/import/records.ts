// Splits an input into records: lines of NDJSON, elements of a JSON array, or rows of CSV.
import { createHash } from 'node:crypto'
import { byteOrderMark, type Form, type Input, InputError } from './input.ts'

/** Maximum size of a record, and maximum distance to the closing quotation mark of a cell. */
const maxRecordBytes = 2 ** 20
const tooLong = `is longer than ${maxRecordBytes / 1024} KiB`

/**
 * `line`: line number, from 1, of the start of the record (of the end, if it has a `fault`); `end`: offset of its end
 * in the input, before the line break; `text`: the record, with its line break except in JSON. It has one character per
 * byte (latin1), so that offsets and rejects are exact.
 */
export type InputRecord = { line: number; end: number; text: string } & Pick<Found, 'cells' | 'fault'>

/**
 * A record found at an offset in a text. `start`: its start, if that is later; `next`: offset of the next record;
 * `fault`: of its last line; `isBlank`: not a record, such as an empty line; `refusal`: why the input is refused.
 */
type Found = {
  start?: number
  end: number
  next: number
  cells?: string[] | undefined
  fault?: string | undefined
  isBlank?: boolean
  refusal?: string
}
/** Finds the next record. Returns undefined if more text is needed, or at the end of the last text (`isLast`). */
type Find = (text: string, from: number, isLast: boolean) => Found | undefined

/** `head`: the first chunk of an input, from which the format was detected; `chunks`: the other chunks. */
export type Source = { form: Form; head: Buffer; chunks: Input['chunks'] }

/** Reads the records chunk by chunk. `hashTo`: returns the SHA-256 (hex) of the input up to an offset in this chunk. */
export async function* readRecords({ form, head, chunks }: Source) {
  const find = { ndjson: findLine, json: makeElementFinder(), csv: makeRowFinder(form) }[form.format]
  const sha256 = createHash('sha256')
  /** The text that is not consumed, its line, its offset in the input, and whether the input ends with it. */
  let [rest, line, at, isLast] = ['', 1, 0, false]
  for (let chunk: Buffer | undefined = head; !isLast; chunk = (await chunks.next()).value) {
    isLast = chunk === undefined
    const text = rest + (chunk?.toString('latin1') ?? '')
    const hashTo = (end: number) => {
      const hash = sha256.copy().update(text.slice(0, end - at), 'latin1')
      return hash.digest('hex')
    }
    let feed = text.indexOf('\n')
    /** Advances `line` to the line of an offset, and returns it. Offsets must not decrease. */
    const advanceLine = (offset: number) => {
      for (; feed !== -1 && feed < offset; feed = text.indexOf('\n', feed + 1)) line++
      return line
    }
    const records: InputRecord[] = []
    let from = at === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
    for (let found = find(text, from, isLast); found; found = find(text, from, isLast)) {
      const { start = from, end, next, cells, fault, isBlank = end === start } = found
      const refusal = next - start > maxRecordBytes ? tooLong : found.refusal
      if (refusal) throw new InputError(`line ${advanceLine(start)}: ${refusal}`)
      const record = text.slice(start, form.format === 'json' ? end : next)
      if (!isBlank)
        records.push({ line: advanceLine(fault ? end : start), end: at + end, text: record, cells, fault })
      from = next
    }
    yield { records, hashTo }
    sha256.update(text.slice(0, from), 'latin1')
    advanceLine(from)
    rest = text.slice(from)
    at += from
    if (rest.length > maxRecordBytes) throw new InputError(`line ${line}: ${tooLong}`)
  }
}

const findLine: Find = (text, from, isLast) => {
  const feed = text.indexOf('\n', from)
  if (feed === -1 && (!isLast || from === text.length)) return undefined
  const end = feed === -1 ? text.length : feed
  return { end: end > from && text[end - 1] === '\r' ? end - 1 : end, next: feed === -1 ? end : feed + 1 }
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
  // The beginning of a quoted cell, with its text in a group.
  const opening = `${blank}"([^"]*(?:""[^"]*)*)`
  // A cell and what ends it: the text of a quoted cell, or a bare cell; then a separator, a line break or the end.
  const cell = new RegExp(`(?:${opening}"${blank}|([^${between}"\n]*?))(${between}|\r?\n|\r?$)`, 'y')
  // For faults only: any cell that begins with a quotation mark, as with --trim.
  const quoted = `${blanks}"[^"]*(?:""[^"]*)*`
  const unclosed = new RegExp(`${quoted}$`, 'y')
  // A quotation mark directly after a separator or a line feed begins another cell.
  const closed = new RegExp(`${quoted}(?<![${between}\n]${blank})"(?!")`, 'y')
  // A whole cell in quotation marks.
  const enclosed = new RegExp(`^${opening}"${blank}$`)
  const unquote = (inner: string) => inner.replaceAll('""', '"')
  const findRow: Find = (text, from, isLast) => {
    const cells: string[] = []
    // A longer row has the same fault in every chunk, whatever follows it there.
    const near = text.slice(0, from + maxRecordBytes)
    for (let at = from; ; at = cell.lastIndex) {
      cell.lastIndex = unclosed.lastIndex = closed.lastIndex = at
      const [, inner, bare = '', separator] = cell.exec(near) ?? []
      const isAtEnd = separator !== undefined && /^\r?$/.test(separator)
      // The quotation mark at the bound may be the first of a pair.
      const isCut = isAtEnd && inner !== undefined && near !== text
      if (separator === undefined || isCut) {
        const isUnclosed = isCut || unclosed.test(near)
        // The next chunk may begin with the second quotation mark of a pair.
        if ((isUnclosed || /["\xc2]$/.test(near)) && !isLast && near === text) return undefined
        // Skips the whole quoted cell: its lines are not rows.
        const line = findLine(text, !isCut && closed.test(near) ? closed.lastIndex - 1 : at, isLast)
        return line && { ...line, fault: isUnclosed ? unclosedFault : insideFault }
      }
      if (isAtEnd && (!isLast || near !== text)) return undefined
      cells.push(inner === undefined ? bare : unquote(inner))
      if (separator !== delimiter)
        return { end: cell.lastIndex - separator.length, next: cell.lastIndex, cells }
    }
  }
  return (text, from, isLast) => {
    const line = findLine(text, from, isLast)
    if (line === undefined) return undefined
    const whole = text.slice(from, line.end)
    const parts = whole.split(delimiter)
    if (quote === 'none' || !whole.includes('"')) return { ...line, cells: parts }
    if (delimiter === '\t')
      return { ...line, cells: parts.map((part) => part.replace(enclosed, (_, inner) => unquote(inner))) }
    if (delimiter !== '|') return findRow(text, from, isLast)
    const { fault, cells = [] }: Partial<Found> = findRow(whole, 0, true) ?? {}
    return { ...line, cells: fault === undefined ? cells : parts }
  }
}

/** Finds the elements of a JSON array of any size. They are parsed later. */
function makeElementFinder(): Find {
  let before: string | undefined
  return (text, from, isLast) => {
    const start = from + text.slice(from).search(/[^ \t\r\n]|$/)
    const refuse = (refusal: string) => ({ start, end: start, next: start, refusal })
    if (before === ']' && start < text.length) return refuse('text follows the JSON array')
    const next = before === undefined ? start : findElementEnd(text, start)
    if (next === text.length) {
      const isCut = isLast && before !== ']'
      return isCut ? refuse('the JSON array does not end: the input is truncated') : undefined
    }
    let end = next
    while (end > start && /[ \t\r\n]/.test(text.charAt(end - 1))) end--
    const isBlank = before === undefined || (before === '[' && end === start && text[next] === ']')
    before = text[next]
    return { start, end, next: next + 1, isBlank }
  }
}

/** Finds the comma or bracket after the element at an offset, or the end of the text. */
function findElementEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '"') {
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
    } else if (char === '{' || char === '[') depth++
    else if (depth > 0 && (char === '}' || char === ']')) depth--
    else if (depth === 0 && (char === ',' || char === ']')) return at
  }
  return text.length
}
