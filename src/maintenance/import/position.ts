// How far an import has come, and the note of it that the store keeps for ever.
import type { Owner } from './owner.ts'

/**
 * The end of a record: so many `records` and `bytes` of the input were consumed, `hash` is the SHA-256 (hex) of these
 * bytes, `line` is where the last record began. `valid`: records without a fault; `rejects`: length of their file.
 */
export type Position = {
  records: number
  valid: number
  line: number
  bytes: number
  hash: string
  rejects: number
}

export const beginning: Position = { records: 0, valid: 0, line: 0, bytes: 0, hash: '', rejects: 0 }

/** `end`: of the last batch; `from`: where it begins, as its rejects may not have been written. */
export type Place = { from: Position; end: Position }

/**
 * An import. `path`: undefined for a pipe; `head`: of the input as it was at first; `run`: the last import that had to
 * do with this one; `readAs`: options that change what a record is; `at`: in milliseconds since 1970; `done`: to the
 * end of the input; `restarted`: from its beginning in spite of imports before.
 */
export type Note = Place &
  Owner & {
    path: string | undefined
    head: Pick<Position, 'bytes' | 'hash'>
    run: string
    readAs: string
    at: number
    done: boolean
    restarted: boolean
  }

/** A pattern for the keys of the notes in `meta`, where a number stands for `%`. */
export const noteKeys = 'import/%'
