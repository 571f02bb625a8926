// Cursors: the start of a page as clients see it, a position with a keyed hash that only the store can make.
import { hash } from 'node:crypto'
import type { Epochs } from '../../store/epochs.ts'

export type Cursors = ReturnType<typeof makeCursors>

/** 66 bits, too many to guess. */
const markLength = 11

/**
 * Makes the cursors of a store; `storeId` is the key of their hash. The hash covers the epoch that owns the position,
 * so that a cursor becomes invalid with the plants before it.
 */
export function makeCursors(storeId: string) {
  /** A hash takes a third of an HMAC's time; truncation, and the key at its end, prevent length extension. */
  function encode(position: number, epochs: Epochs): string {
    const mark = hash('sha256', `${storeId}:${position}:${epochs.owner(position)}:${storeId}`, 'base64url')
    return `${position.toString(36)}-${mark.slice(0, markLength)}`
  }

  /** Returns the position; undefined for a cursor that this store did not issue, or whose plants were cut off the log. */
  function decode(cursor: string, epochs: Epochs): number | undefined {
    const position = Number.parseInt(cursor, 36)
    return Number.isSafeInteger(position) && encode(position, epochs) === cursor ? position : undefined
  }

  return { encode, decode }
}
