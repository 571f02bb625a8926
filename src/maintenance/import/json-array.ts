// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { countLineFeeds, type Groups, InputError, type InputRecord, maxRecordBytes } from './record.ts'

const [quote, backslash, comma, endOfArray] = [34, 92, 44, 93]
const isSpace = (code: number) => code === 32 || code === 9 || code === 10 || code === 13
/** Brackets of objects and arrays differ in one bit. */
const opens = (code: number) => (code | 32) === 123
const closes = (code: number) => (code | 32) === 125

export async function* splitArray(chunks: AsyncIterable<Buffer>): Groups {
  let expected: 'array' | 'first element' | 'element' | 'nothing' = 'array'
  /** What was not split yet, and where it begins. */
  let [text, offset, line] = ['', 0, 1]
  const drop = (length: number) => {
    line += countLineFeeds(text.slice(0, length))
    offset += length
    text = text.slice(length)
  }
  const refuse = (reason: string) => new InputError(reason, line)
  /** Takes what is between elements: an element begins then, or the text ends. */
  const takePunctuation = () => {
    for (;;) {
      let spaces = 0
      while (isSpace(text.charCodeAt(spaces))) spaces++
      drop(spaces)
      const sign = text[0]
      if (sign === undefined) return
      if (expected === 'nothing') throw refuse('text follows the JSON array')
      if (expected === 'array') {
        if (sign !== '[') throw refuse('is not a JSON array')
        expected = 'first element'
      } else if (sign === ',' || (sign === ']' && expected === 'element')) {
        throw refuse(`expected an element before "${sign}"`)
      } else if (sign === ']') expected = 'nothing'
      else return
      drop(1)
    }
  }
  function* split(): Generator<InputRecord> {
    for (takePunctuation(); text !== ''; takePunctuation()) {
      const next = findEnd(text)
      let end = next ?? text.length
      if (end > maxRecordBytes)
        throw refuse(`the element that begins here is longer than ${maxRecordBytes / 1024} KiB`)
      if (next === undefined) return
      while (isSpace(text.charCodeAt(end - 1))) end--
      yield { line, text: text.slice(0, end), end: offset + end }
      expected = text[next] === ',' ? 'element' : 'nothing'
      drop(next + 1)
    }
  }
  for await (const chunk of chunks) {
    text += chunk.toString('latin1')
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
