// Where a page of the list starts, as clients see it: a position, with a mark that only the store can make.
import { createHmac } from 'node:crypto'

export type Cursors = {
  encode(position: number): string
  /** The position, or undefined for a cursor that this store never gave out. */
  decode(cursor: string): number | undefined
}

/** `storeId`: the key of the mark; cursors of one store mean nothing to another. */
export function makeCursors(storeId: string): Cursors {
  function encode(position: number): string {
    const mark = createHmac('sha256', storeId).update(`after:${position}`).digest('base64url').slice(0, 11)
    return `${position.toString(36)}-${mark}`
  }
  return {
    encode,
    decode(cursor) {
      const position = Number.parseInt(cursor, 36)
      return Number.isSafeInteger(position) && encode(position) === cursor ? position : undefined
    },
  }
}
