// A record of the input as it was found there, before anything about it is judged.

/** The longest record: many times what a plant can take up, and no more memory than that per record. */
export const maxRecordBytes = 64 * 1024

/** `source`: JSON text, or the cells of a row; `line`: where it begins, counted from 1. */
export type InputRecord = { line: number; source: string | string[] }

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
