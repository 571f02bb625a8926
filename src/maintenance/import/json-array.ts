// Splits a JSON array of any size into the texts of its elements, which are parsed later.
import { InputError } from './input-error.ts'
import { type InputRecord, maxRecordLength, type Splitter } from './record.ts'

/** Expected next, beside white space. */
type Expected = 'array' | 'element or end' | 'element' | 'rest of element' | 'nothing'

const lineFeed = 0x0a
const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

export class JsonArraySplitter implements Splitter {
  #expected: Expected = 'array'
  #line = 1
  /** The current element: its text so far, the line where it began, and the state of the scan. */
  #text = ''
  #start = 1
  #depth = 0
  #inString = false
  #escaped = false

  push(chunk: Buffer, found: InputRecord[]): void {
    const text = this.#text + chunk.toString()
    // Start of the current element.
    let from = this.#inElement ? 0 : text.length
    for (let i = this.#text.length; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code === lineFeed) this.#feed()
      if (!this.#inElement) {
        if (isSpace(code)) continue
        this.#begin(code)
        if (!this.#inElement) continue
        from = i
      }
      if (!this.#ends(code)) continue
      found.push(this.#element(text.slice(from, i)))
      from = text.length
      this.#expected = code === comma ? 'element' : 'nothing'
    }
    this.#text = text.slice(from)
    this.#checkLength(this.#text.length)
  }

  end(): void {
    if (this.#expected === 'array') throw new InputError('is empty, expected a JSON array')
    if (this.#expected === 'nothing') return
    throw new InputError('the JSON array does not end: the input is cut short', this.#line)
  }

  get #inElement(): boolean {
    return this.#expected === 'rest of element'
  }

  #feed(): void {
    if (this.#inString) throw new InputError('a string does not end on its line', this.#line)
    this.#line++
  }

  /** Takes the first character of an element or of punctuation. */
  #begin(code: number): void {
    const expected = this.#expected
    if (expected === 'nothing') throw new InputError('text follows the JSON array', this.#line)
    if (expected === 'array') {
      if (code !== openBracket) throw new InputError('is not a JSON array', this.#line)
      this.#expected = 'element or end'
    } else if (code === closeBracket && expected === 'element or end') this.#expected = 'nothing'
    else if (code === closeBracket || code === comma)
      throw new InputError(`expected an element before "${String.fromCharCode(code)}"`, this.#line)
    else {
      this.#expected = 'rest of element'
      this.#start = this.#line
    }
  }

  /** True when this character is the first after the element. Mismatched brackets are found when it is parsed. */
  #ends(code: number): boolean {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false
      else if (code === backslash) this.#escaped = true
      else if (code === quote) this.#inString = false
    } else if (code === quote) this.#inString = true
    else if (code === openBrace || code === openBracket) this.#depth++
    else if (this.#depth > 0) {
      if (code === closeBrace || code === closeBracket) this.#depth--
    } else return code === comma || code === closeBracket
    return false
  }

  #element(text: string): InputRecord {
    this.#checkLength(text.length)
    return { line: this.#start, source: text.trimEnd() }
  }

  #checkLength(length: number): void {
    if (length > maxRecordLength)
      throw new InputError(
        `the element that begins here is longer than ${maxRecordLength / 1024} KiB`,
        this.#start,
      )
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === lineFeed || code === 0x0d || code === 0x09
}
