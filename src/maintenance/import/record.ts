// Records of the input, not yet checked, and what splits an input into them.
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'

/** The longest form of a character: two escapes, like `\ud83c\udf34`. */
const characterBytes = 12
/** Room for the name's quotes, the punctuation of a member, and a number. */
const aroundBytes = 32
const plantBytes = Object.entries<TSchema>(NewPlant.properties)
  .map(([field, { maxLength = 0 }]) => field.length + aroundBytes + maxLength * characterBytes)
  .reduce((sum, bytes) => sum + bytes)

/** The longest record, in bytes; well above the longest plant, and a bound on memory. */
export const maxRecordBytes = Math.ceil(plantBytes / 8192) * 64 * 1024

/** The fault of a longer record, whose text is cut off. */
export const tooLong: Fault = {
  code: 'length',
  detail: `is longer than ${maxRecordBytes / 1024} KiB`,
  pointer: '',
}

/**
 * `line`: counted from 1; `text`: its bytes as they are in the input, one per character (latin1); `end`: the offset
 * behind it, before its end of line; `eol`: that of a line; `cells`: of a CSV row; `isOpen`: the input ends with it,
 * without an end of line.
 */
export type InputRecord = {
  line: number
  text: string
  end: number
  eol?: '\n' | '\r\n'
  cells?: string[]
  fault?: Fault
  isOpen?: boolean
}

/** Records, in order. Each group is to be read before the next. */
export type Groups = AsyncGenerator<Iterable<InputRecord>>

/**
 * Splits an input in one format into records. Its bytes come as texts, one byte per character, since offsets and
 * rejects are exact then, and no character is in two pieces. Throws InputError when the rest cannot be read; records
 * yielded before stay valid.
 */
export type Splitter = (texts: AsyncIterable<string>) => Groups
