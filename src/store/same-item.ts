// Whether a retry brings the item that is already there: compared by value, so that how it was written does not matter.
import { isDeepStrictEqual } from 'node:util'

/** Both are JSON texts. */
export function sameItem(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}
