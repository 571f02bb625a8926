// Cursors: the start of a page as clients see it, a position with a mark that only the store can make.
import { hash } from 'node:crypto'
import type { Epochs } from '../../store/epochs.ts'

export type Cursors = {
  encode(position: number, epochs: Epochs): string
  /** The position, or undefined for a cursor that this store never gave out, or whose plants were cut off the log. */
  decode(cursor: string, epochs: Epochs): number | undefined
}

/** 66 bits, which nobody guesses. */
const markLength = 11

/**
 * `storeId`: the key of the mark; cursors of one store mean nothing to another. The mark also holds the epoch that owns
 * the position, so none outlives the plants that it counts.
 */
export function makeCursors(storeId: string): Cursors {
  /** A third of an HMAC's time. What is cut off, and the key behind the text, keep anybody from extending the hash. */
  function encode(position: number, epochs: Epochs): string {
    const mark = hash('sha256', `${storeId}:${position}:${epochs.owner(position)}:${storeId}`, 'base64url')
    return `${position.toString(36)}-${mark.slice(0, markLength)}`
  }

  return {
    encode,
    decode(cursor, epochs) {
      const position = Number.parseInt(cursor, 36)
      return Number.isSafeInteger(position) && encode(position, epochs) === cursor ? position : undefined
    },
  }
}
