// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { InputError } from './input-error.ts'
import { type Groups, type InputRecord, maxRecordBytes } from './record.ts'

/** Expected next, beside white space. */
type Expected = 'array' | 'first element' | 'element' | 'nothing'

const [lineFeed, quote, backslash, comma, endOfArray] = [10, 34, 92, 44, 93]
const isSpace = (code: number) => code === 32 || code === 9 || code === 10 || code === 13
const tooLong = `the element that begins here is longer than ${maxRecordBytes / 1024} KiB`
/** Brackets of objects and arrays differ in one bit. */
const opens = (code: number) => (code | 32) === 123
const closes = (code: number) => (code | 32) === 125

export async function* splitArray(texts: AsyncIterable<string>): Groups {
  let expected = 'array' as Expected
  let [line, offset] = [1, 0]
  /** The element that has begun: its line, and its text in earlier pieces. */
  let begun: { line: number; text: string } | undefined
  let [depth, isInString, isEscaped] = [0, false, false]

  /** Adds to the element that has begun. */
  const extend = (text: string) => {
    const { line, text: before } = begun as NonNullable<typeof begun>
    begun = { line, text: before + text }
    if (begun.text.length > maxRecordBytes) throw new InputError(tooLong, line)
    return begun
  }
  /** Takes a byte between elements; true when it begins one. */
  const begins = (code: number): boolean => {
    if (expected === 'nothing') throw new InputError('text follows the JSON array', line)
    if (expected === 'array') {
      if (code !== 91) throw new InputError('is not a JSON array', line)
      expected = 'first element'
      return false
    }
    if (code !== comma && code !== endOfArray) return true
    if (code === comma || expected === 'element')
      throw new InputError(`expected an element before "${String.fromCharCode(code)}"`, line)
    expected = 'nothing'
    return false
  }
  function* split(text: string): Generator<InputRecord> {
    let start = 0
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code === lineFeed) line++
      if (begun === undefined) {
        if (isSpace(code) || !begins(code)) continue
        begun = { line, text: '' }
        start = i
      }
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (code === backslash) isEscaped = true
        else if (code === quote) isInString = false
      } else if (code === quote) isInString = true
      else if (opens(code)) depth++
      else if (depth > 0) depth -= Number(closes(code))
      else if (code === comma || code === endOfArray) {
        const { line, text: whole } = extend(text.slice(start, i))
        let spaces = 0
        while (isSpace(whole.charCodeAt(whole.length - 1 - spaces))) spaces++
        yield { line, text: whole.slice(0, whole.length - spaces), end: offset + i - spaces }
        begun = undefined
        expected = code === comma ? 'element' : 'nothing'
      }
    }
    offset += text.length
    if (begun !== undefined) extend(text.slice(start))
  }
  for await (const piece of texts) yield split(piece)
  if (expected === 'array') throw new InputError('is empty, expected a JSON array')
  if (expected !== 'nothing')
    throw new InputError('the JSON array does not end: the input is cut short', begun?.line ?? line)
}
