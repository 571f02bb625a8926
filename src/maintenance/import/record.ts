// Records of the input, not yet checked, and the error of an input that cannot be read on.
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

/** The fault of a longer record, whose text is cut off. */
export const tooLong: Fault = {
  code: 'length',
  detail: `is longer than ${maxRecordBytes / 1024} KiB`,
  pointer: '',
}

/**
 * `line`: counted from 1; `text`: its bytes as they are in the input, one per character (latin1), since offsets and
 * rejects are exact then; `end`: the offset behind it, before its end of line; `eol`: that of a line; `isOpen`: the
 * input ends with it, without an end of line; `cells`: of a CSV row.
 */
export type InputRecord = {
  line: number
  text: string
  end: number
  eol?: '\n' | '\r\n'
  isOpen?: boolean
  cells?: string[]
  fault?: Fault
}

/** Records, in order. Each group is to be read before the next. */
export type Groups = AsyncGenerator<Iterable<InputRecord>>

/**
 * Splits an input in one format into records. `head`: its beginning. Throws InputError when the rest cannot be read;
 * records yielded before stay valid.
 */
export type Splitter = (chunks: AsyncIterable<Buffer>, head: Buffer) => Groups

/** The text that is not split yet, and where in the input it begins; `line` counts from 1. */
export class Rest {
  text = ''
  offset = 0
  line = 1

  /** Removes so many characters from its beginning, and returns them. */
  drop(length: number): string {
    const dropped = this.text.slice(0, length)
    for (let i = dropped.indexOf('\n'); i !== -1; i = dropped.indexOf('\n', i + 1)) this.line++
    this.offset += length
    this.text = this.text.slice(length)
    return dropped
  }
}

/** The rest of the input cannot be read. A wrong record is no such error: it is rejected. */
export class InputError extends Error {
  /** Tells it from an error of the program. */
  readonly code = 'ERR_INPUT'
  readonly line: number | undefined

  /** `line`: counted from 1. */
  constructor(reason: string, line?: number) {
    super(reason)
    this.line = line
  }
}
