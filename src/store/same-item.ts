// Whether two items say the same: a retry is compared by value, so that the order of keys, which is a matter of the
// schema's text, can change without turning a safe retry into a conflict.
import { isDeepStrictEqual } from 'node:util'

/** Both are JSON texts. */
export function isSameItem(kept: string, item: string): boolean {
  return kept === item || isDeepStrictEqual(JSON.parse(kept), JSON.parse(item))
}
