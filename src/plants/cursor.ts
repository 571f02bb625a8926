// Where a page of the list starts, as clients see it: a position, with a mark that only the store can make.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'

export type Cursors = {
  encode(position: number): string
  /** The position, or undefined for a cursor that this store never gave out. */
  decode(cursor: string): number | undefined
}

const maxKept = 1000

/** `storeId`: the key of the mark; cursors of one store mean nothing to another. */
export function makeCursors(storeId: string): Cursors {
  const cursors = new LRUCache<number, string>({ max: maxKept, memoMethod: make })

  function make(position: number): string {
    const mark = createHmac('sha256', storeId).update(`after:${position}`).digest('base64url').slice(0, 11)
    return `${position.toString(36)}-${mark}`
  }

  return {
    encode: (position) => cursors.memo(position),
    decode(cursor) {
      const position = Number.parseInt(cursor, 36)
      return Number.isSafeInteger(position) && make(position) === cursor ? position : undefined
    },
  }
}
