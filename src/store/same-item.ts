// Compares items by value: a retry may be written in another way.
import { isDeepStrictEqual } from 'node:util'

/** Both are JSON texts. */
export function sameItem(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}
