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

/** The longest record, in UTF-16 code units; well above the longest plant, and a bound on memory. */
export const maxRecordLength = Math.ceil(plantBytes / 8192) * 64 * 1024

/**
 * `line`: counted from 1; `text`: as it is in the input; `cells`: of a CSV row; `fault`: the reason why it was cut off.
 */
export type InputRecord = { line: number; text: string; cells?: string[]; fault?: Fault }

/** Records, in order. Each group is to be read before the next. */
export type Groups = AsyncGenerator<Iterable<InputRecord>>

/**
 * Splits the texts of an input in one format into records. Throws InputError when the rest cannot be read; records
 * yielded before stay valid.
 */
export type Splitter = (texts: AsyncIterable<string>) => Groups
