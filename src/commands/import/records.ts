// Splits an input into records: lines of NDJSON, or elements of a JSON array; rows of CSV are joined from lines.
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'

/** The longest record: well above the longest plant, with a character as two escapes (`\ud83c\udf34`) of 12 bytes. */
const textBytes = Object.values<TSchema>(NewPlant.properties).reduce(
  (sum, { maxLength = 0 }) => sum + 12 * maxLength,
  0,
)
export const maxRecordBytes = Math.ceil(textBytes / 8192) * 64 * 1024

export const faultOf = (detail: string): Fault => ({ code: 'format', detail, pointer: '' })
export const tooLong: Fault = { ...faultOf(`is longer than ${maxRecordBytes / 1024} KiB`), code: 'length' }

/**
 * `line`: counted from 1; `text`: its bytes, one per character (latin1), so that offsets and rejects are exact; `end`: the
 * offset behind it, before its end of line; `eol`: '' if the input ends without one; `cells`: of a row.
 */
export type InputRecord = {
  line: number
  text: string
  end: number
  eol?: string
  cells?: string[]
  fault?: Fault
}

/** Records, in order. Each group is read before the next. */
export type Groups = AsyncGenerator<InputRecord[]>

/** The input cannot be imported, or not as a whole; `line`: counted from 1. */
export class InputError extends Error {
  readonly line: number | undefined

  constructor(reason: string, line?: number) {
    super(reason)
    this.line = line
  }
}

/** Splits into lines, also empty ones. Only the beginning of a line that is too long is kept. */
export async function* splitLines(chunks: AsyncIterable<Buffer>): Groups {
  let [line, at, rest, cut] = [0, 0, '', 0]
  const take = (whole: string, end: string): InputRecord => {
    const eol = end && whole.endsWith('\r') ? '\r\n' : end
    const text = eol.length > 1 ? whole.slice(0, -1) : whole
    const isLong = cut + text.length > maxRecordBytes
    const record = { line: ++line, text, end: at + cut + text.length, eol, ...(isLong && { fault: tooLong }) }
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

/** Splits a JSON array of any size into the texts of its elements, which are parsed later. */
export async function* splitArray(chunks: AsyncIterable<Buffer>): Groups {
  let [rest, offset, line, place] = ['', 0, 1, 'before' as 'before' | 'first' | 'next' | 'behind']
  const drop = (length: number) => {
    line += rest.slice(0, length).split('\n').length - 1
    offset += length
    rest = rest.slice(length)
  }
  const dropSpace = () => drop(rest.search(/[^ \t\r\n]|$/))
  for await (const chunk of chunks) {
    rest += chunk.toString('latin1')
    const records: InputRecord[] = []
    for (dropSpace(); rest !== ''; dropSpace()) {
      if (place === 'behind') throw new InputError('text follows the JSON array', line)
      if (place === 'before' && rest[0] !== '[') throw new InputError('is not a JSON array', line)
      const end = place === 'before' ? 0 : findEnd(rest)
      if ((end ?? rest.length) > maxRecordBytes) throw new InputError(`an element ${tooLong.detail}`, line)
      if (end === undefined) break
      const text = rest.slice(0, end).replace(/[ \t\r\n]+$/, '')
      // A missing element is a fault, unless the array is empty.
      const isElement = text !== '' || rest[end] === ',' || place === 'next'
      if (place !== 'before' && isElement) records.push({ line, text, end: offset + text.length })
      place = place === 'before' ? 'first' : rest[end] === ',' ? 'next' : 'behind'
      drop(end + 1)
    }
    yield records
  }
  if (place !== 'behind') throw new InputError('the JSON array does not end: the input is cut short', line)
}

const [quote, backslash, comma, endOfArray] = [34, 92, 44, 93]
/** Brackets of objects and arrays differ in one bit. */
const opens = (code: number) => (code | 32) === 123
const closes = (code: number) => (code | 32) === 125

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
