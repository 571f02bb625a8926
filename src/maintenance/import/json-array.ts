// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { InputError } from './input-error.ts'
import { type InputRecord, maxRecordLength, type Splitter } from './record.ts'

/** Expected next, beside white space. */
type Expected = 'array' | 'element or end' | 'element' | 'nothing'

const space = /[ \t\r\n]*/y

export class JsonArraySplitter implements Splitter {
  #expected: Expected = 'array'
  /** The beginning of an element. */
  #rest = ''
  /** The line of its first character. */
  #line = 1;

  *split(piece: string, isLast: boolean): Generator<InputRecord> {
    const text = this.#rest + piece
    let at = this.#pass(text, 0, findSpaceEnd(text, 0))
    while (at < text.length) {
      let end = at
      if (!this.#takePunctuation(text.charAt(at))) {
        end = findElementEnd(text, at)
        const length = (end < 0 ? text.length : end) - at
        if (length > maxRecordLength) throw this.#refuse(tooLong)
        if (end < 0) break
        yield { line: this.#line, text: text.slice(at, end).trimEnd() }
        this.#expected = text.charAt(end) === ',' ? 'element' : 'nothing'
      }
      at = this.#pass(text, at, findSpaceEnd(text, end + 1))
    }
    this.#rest = text.slice(at)
    if (isLast) this.#end()
  }

  /** Counts the lines up to an index, and returns it. */
  #pass(text: string, from: number, to: number): number {
    this.#line += text.slice(from, to).split('\n').length - 1
    return to
  }

  /** Takes a bracket around the elements; returns false for the first character of an element. */
  #takePunctuation(character: string): boolean {
    const expected = this.#expected
    if (expected === 'nothing') throw this.#refuse('text follows the JSON array')
    if (expected === 'array') {
      if (character !== '[') throw this.#refuse('is not a JSON array')
      this.#expected = 'element or end'
      return true
    }
    if (character !== ']' && character !== ',') return false
    if (character === ',' || expected === 'element')
      throw this.#refuse(`expected an element before "${character}"`)
    this.#expected = 'nothing'
    return true
  }

  #end(): void {
    if (this.#expected === 'array') throw new InputError('is empty, expected a JSON array')
    if (this.#expected !== 'nothing')
      throw this.#refuse('the JSON array does not end: the input is cut short')
  }

  #refuse(reason: string): InputError {
    return new InputError(reason, this.#line)
  }
}

const tooLong = `the element that begins here is longer than ${maxRecordLength / 1024} KiB`

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
