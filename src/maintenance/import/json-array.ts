// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { type Groups, InputError, type InputRecord, maxRecordBytes, Rest } from './record.ts'

const [quote, backslash, comma, endOfArray] = [34, 92, 44, 93]
const isSpace = (code: number) => code === 32 || code === 9 || code === 10 || code === 13
/** Brackets of objects and arrays differ in one bit. */
const opens = (code: number) => (code | 32) === 123
const closes = (code: number) => (code | 32) === 125

export async function* splitArray(chunks: AsyncIterable<Buffer>): Groups {
  let expected: 'array' | 'first element' | 'element' | 'nothing' = 'array'
  const rest = new Rest()
  const refuse = (reason: string) => new InputError(reason, rest.line)
  /** Takes what is between elements: an element begins then, or the text ends. */
  const takePunctuation = () => {
    for (;;) {
      let spaces = 0
      while (isSpace(rest.text.charCodeAt(spaces))) spaces++
      rest.drop(spaces)
      const sign = rest.text[0]
      if (sign === undefined) return
      if (expected === 'nothing') throw refuse('text follows the JSON array')
      if (expected === 'array') {
        if (sign !== '[') throw refuse('is not a JSON array')
        expected = 'first element'
      } else if (sign === ',' || (sign === ']' && expected === 'element')) {
        throw refuse(`expected an element before "${sign}"`)
      } else if (sign === ']') expected = 'nothing'
      else return
      rest.drop(1)
    }
  }
  function* split(): Generator<InputRecord> {
    for (takePunctuation(); rest.text !== ''; takePunctuation()) {
      const { text, line, offset } = rest
      const next = findEnd(text)
      let end = next ?? text.length
      if (end > maxRecordBytes)
        throw refuse(`the element that begins here is longer than ${maxRecordBytes / 1024} KiB`)
      if (next === undefined) return
      while (isSpace(text.charCodeAt(end - 1))) end--
      yield { line, text: text.slice(0, end), end: offset + end }
      expected = text[next] === ',' ? 'element' : 'nothing'
      rest.drop(next + 1)
    }
  }
  for await (const chunk of chunks) {
    rest.text += chunk.toString('latin1')
    yield split()
  }
  if (expected === 'array') throw new InputError('is empty, expected a JSON array')
  if (expected !== 'nothing') throw refuse('the JSON array does not end: the input is cut short')
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
