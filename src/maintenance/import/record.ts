// A record of the input as it was found there, before anything about it is judged.
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'

/** A character is longest as two escapes, like `\ud83c\udf34`; a number, and what stands around a value, is shorter. */
const characterBytes = 12
const aroundBytes = 32
const plantBytes = Object.entries<TSchema>(NewPlant.properties)
  .map(([field, { maxLength = 0 }]) => field.length + aroundBytes + maxLength * characterBytes)
  .reduce((sum, bytes) => sum + bytes)

/** The longest record: many times what a plant can take up, and no more memory than that per record. */
export const maxRecordBytes = Math.ceil(plantBytes / 8192) * 64 * 1024

/**
 * `source`: JSON text, or the cells of a row, whose `text` is what stood there; `line`: where it begins, counted from 1;
 * `fault`: why it is cut off.
 */
export type InputRecord = { line: number; source: string | string[]; text?: string; fault?: Fault }

/**
 * Finds the records of one format in chunks of text, and adds them to `found`. Throws InputError when the rest cannot be
 * read; what was found before stands.
 */
export interface Splitter {
  /** The records that end in this chunk; it ends with a whole character, and its UTF-8 is valid. */
  push(chunk: Buffer, found: InputRecord[]): void | Promise<void>
  /** The records that end with the input. */
  end(found: InputRecord[]): void | Promise<void>
}
