// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { InputError } from './input-error.ts'
import { type Groups, type InputRecord, maxRecordLength } from './record.ts'

/** Expected next, beside white space. */
type Expected = 'array' | 'first element' | 'element' | 'nothing'

const space = /[ \t\r\n]*/y
const tooLong = `the element that begins here is longer than ${maxRecordLength / 1024} KiB`

export async function* splitArray(texts: AsyncIterable<string>): Groups {
  let expected = 'array' as Expected
  let line = 1
  /** The beginning of an element. */
  let rest = ''
  const refuse = (reason: string) => new InputError(reason, line)
  function* split(text: string): Generator<InputRecord> {
    let at = 0
    /** Passes the text up to an index, and the white space behind it. */
    const pass = (index: number) => {
      const next = findSpaceEnd(text, index)
      line += text.slice(at, next).split('\n').length - 1
      at = next
    }
    for (pass(0); at < text.length; ) {
      if (expected === 'nothing') throw refuse('text follows the JSON array')
      if (expected === 'array') {
        if (text[at] !== '[') throw refuse('is not a JSON array')
        expected = 'first element'
        pass(at + 1)
        continue
      }
      const end = findElementEnd(text, at)
      if ((end < 0 ? text.length : end) - at > maxRecordLength) throw refuse(tooLong)
      if (end < 0) break
      const mark = text.charAt(end)
      if (end > at) yield { line, text: text.slice(at, end).trimEnd() }
      else if (mark === ',' || expected === 'element') throw refuse(`expected an element before "${mark}"`)
      expected = mark === ',' ? 'element' : 'nothing'
      pass(end + 1)
    }
    rest = text.slice(at)
  }
  for await (const piece of texts) yield split(rest + piece)
  if (expected === 'array') throw new InputError('is empty, expected a JSON array')
  if (expected !== 'nothing') throw refuse('the JSON array does not end: the input is cut short')
}

function findSpaceEnd(text: string, from: number): number {
  space.lastIndex = from
  space.test(text)
  return space.lastIndex
}

/**
 * Finds the comma or bracket behind an element; -1 when it is not in the text. Brackets that do not match are found
 * when the element is parsed.
 */
function findElementEnd(text: string, from: number): number {
  let depth = 0
  let isInString = false
  for (let i = from; i < text.length; i++) {
    const character = text[i]
    if (isInString) {
      if (character === '\\') i++
      else if (character === '"') isInString = false
    } else if (character === '"') isInString = true
    else if (character === '{' || character === '[') depth++
    else if (depth > 0) {
      if (character === '}' || character === ']') depth--
    } else if (character === ',' || character === ']') return i
  }
  return -1
}
