// Cursors: the start of a page as clients see it, a position with a mark that only the store can make.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Epochs } from '../../store/epochs.ts'

export type Cursors = {
  encode(position: number, epochs: Epochs): string
  /** The position, or undefined for a cursor that this store never gave out, or whose plants were cut off the log. */
  decode(cursor: string, epochs: Epochs): number | undefined
}

const maxKept = 1000

/**
 * `storeId`: the key of the mark; cursors of one store mean nothing to another. The mark also holds the epoch that owns
 * the position, so none outlives the plants that it counts.
 */
export function makeCursors(storeId: string): Cursors {
  const kept = new LRUCache<string, string>({ max: maxKept })

  function make(position: number, epoch: string): string {
    const mark = createHmac('sha256', storeId).update(`after:${position}:${epoch}`).digest('base64url')
    return `${position.toString(36)}-${mark.slice(0, 11)}`
  }

  return {
    encode(position, epochs) {
      const epoch = epochs.owner(position)
      const key = `${position}:${epoch}`
      const known = kept.get(key)
      if (known !== undefined) return known
      const cursor = make(position, epoch)
      kept.set(key, cursor)
      return cursor
    },
    decode(cursor, epochs) {
      const position = Number.parseInt(cursor, 36)
      if (!Number.isSafeInteger(position)) return undefined
      const epoch = epochs.owner(position)
      const genuine = kept.get(`${position}:${epoch}`) ?? make(position, epoch)
      return genuine === cursor ? position : undefined
    },
  }
}
