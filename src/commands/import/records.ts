// Splits an input into its records: lines of NDJSON, elements of a JSON array, rows of CSV (see rows.ts).
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'

/** The longest form of a character: two escapes, like `\ud83c\udf34`. */
const characterBytes = 12
const textBytes = Object.values<TSchema>(NewPlant.properties)
  .map(({ maxLength = 0 }) => maxLength * characterBytes)
  .reduce((sum, bytes) => sum + bytes)

/** The longest record, in bytes; well above the longest plant, and a bound on memory. */
export const maxRecordBytes = Math.ceil(textBytes / 8192) * 64 * 1024

export const tooLong = faultOf(`is longer than ${maxRecordBytes / 1024} KiB`, 'length')

export function faultOf(detail: string, code: Fault['code'] = 'format'): Fault {
  return { code, detail, pointer: '' }
}

/**
 * `line`: counted from 1; `text`: its bytes as they are in the input, one per character (latin1), so that offsets and
 * rejects are exact; `end`: the offset behind it, before its end of line; `eol`: '' if the input ends without one;
 * `cells`: of a row.
 */
export type InputRecord = {
  line: number
  text: string
  end: number
  eol?: '\n' | '\r\n' | ''
  cells?: string[]
  fault?: Fault
}

/** Records, in order. Each group is read before the next. */
export type Groups = AsyncGenerator<InputRecord[]>

/** The input cannot be imported. A record with a fault is no such error: it is rejected. */
export class InputError extends Error {
  /** Distinguishes it from an error of the program. */
  readonly code = 'ERR_INPUT'
  /** Counted from 1. */
  readonly line: number | undefined

  constructor(reason: string, line?: number) {
    super(reason)
    this.line = line
  }
}

/** Splits into lines, also empty ones. Only the beginning of a line that is too long is kept. */
export async function* splitLines(chunks: AsyncIterable<Buffer>): Groups {
  let [line, at, rest, cut] = [0, 0, '', 0]
  const take = (whole: string, end: '\n' | ''): InputRecord => {
    const isCrlf = whole.endsWith('\r') && end !== ''
    const text = isCrlf ? whole.slice(0, -1) : whole
    const record: InputRecord = {
      line: ++line,
      text,
      end: at + cut + text.length,
      eol: isCrlf ? '\r\n' : end,
    }
    if (cut > 0 || text.length > maxRecordBytes) record.fault = tooLong
    at += cut + whole.length + 1
    cut = 0
    return record
  }
  for await (const chunk of chunks) {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = lines.pop() as string
    yield lines.map((text) => take(text, '\n'))
    const more = Math.max(0, rest.length - maxRecordBytes - 2)
    rest = rest.slice(more)
    cut += more
  }
  if (rest.trim() !== '') yield [take(rest, '')]
}

const [quote, backslash, comma, endOfArray] = [34, 92, 44, 93]
const isSpace = (code: number) => code === 32 || code === 9 || code === 10 || code === 13
/** Brackets of objects and arrays differ in one bit. */
const opens = (code: number) => (code | 32) === 123
const closes = (code: number) => (code | 32) === 125

/** Splits a JSON array of any size into the texts of its elements, which are parsed later. */
export async function* splitArray(chunks: AsyncIterable<Buffer>): Groups {
  let expected: 'array' | 'first element' | 'element' | 'nothing' = 'array'
  let [rest, offset, line] = ['', 0, 1]
  const drop = (length: number) => {
    for (let i = rest.indexOf('\n'); i !== -1 && i < length; i = rest.indexOf('\n', i + 1)) line++
    offset += length
    rest = rest.slice(length)
  }
  /** Consumes what is between elements; true if an element begins there. */
  const findElement = (): boolean => {
    for (;;) {
      let spaces = 0
      while (isSpace(rest.charCodeAt(spaces))) spaces++
      drop(spaces)
      const [sign] = rest
      if (sign === undefined) return false
      if (expected === 'nothing') throw new InputError('text follows the JSON array', line)
      if (expected === 'array' && sign !== '[') throw new InputError('is not a JSON array', line)
      if (expected !== 'array' && (sign === ',' || (sign === ']' && expected === 'element')))
        throw new InputError(`expected an element before "${sign}"`, line)
      if (expected === 'array') expected = 'first element'
      else if (sign === ']') expected = 'nothing'
      else return true
      drop(1)
    }
  }
  for await (const chunk of chunks) {
    rest += chunk.toString('latin1')
    const records: InputRecord[] = []
    while (findElement()) {
      const next = findEnd(rest)
      let end = next ?? rest.length
      if (end > maxRecordBytes) throw new InputError(`the element that begins here ${tooLong.detail}`, line)
      if (next === undefined) break
      while (isSpace(rest.charCodeAt(end - 1))) end--
      records.push({ line, text: rest.slice(0, end), end: offset + end })
      expected = rest[next] === ',' ? 'element' : 'nothing'
      drop(next + 1)
    }
    yield records
  }
  if (expected !== 'nothing')
    throw new InputError('the JSON array does not end: the input is cut short', line)
}

/** Finds the comma or bracket behind the element with which a text begins; undefined if there is none yet. */
function findEnd(text: string): number | undefined {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) {
      for (i++; i < text.length && text.charCodeAt(i) !== quote; i++)
        if (text.charCodeAt(i) === backslash) i++
    } else if (opens(code)) depth++
    else if (depth > 0) depth -= Number(closes(code))
    else if (code === comma || code === endOfArray) return i
  }
  return undefined
}
