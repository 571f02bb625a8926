// Compares items by value: older versions may have serialized them differently.
import { isDeepStrictEqual } from 'node:util'

/** True when two JSON texts have equal values. */
export function sameItem(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}
