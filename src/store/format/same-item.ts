// Compares items of the log.
import { isDeepStrictEqual } from 'node:util'

/** True when two items have equal values: older versions may have serialized them differently. */
export function sameItem(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}
