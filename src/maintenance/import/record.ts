// A record of the input, not yet checked.
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
 * `source`: JSON text, or the cells of a row; `text`: the row as it was; `line`: counted from 1; `fault`: the reason
 * why the record was cut off.
 */
export type InputRecord = { line: number; source: string | string[]; text?: string; fault?: Fault }

/**
 * Splits chunks of text in one format into records, which it adds to `found`. Throws InputError when the rest cannot be
 * read; records found before stay valid.
 */
export interface Splitter {
  /** Adds the records that end in a chunk of valid UTF-8, which ends with a whole character. */
  push(chunk: Buffer, found: InputRecord[]): void | Promise<void>
  /** Adds the records that end with the input. */
  end(found: InputRecord[]): void | Promise<void>
}
