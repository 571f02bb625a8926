// The entity tag of a list, which permanently identifies its bytes and is its key in the cache; the cursor and the
// `Link` of its next page. The mark of the last plant identifies the log: two logs with the same mark in row n contain
// the same plants up to n.
import type { Head } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { itemFormat } from './item.ts'

/**
 * The plants at positions `after` + 1 to `last`; `mark`: of row `last`. The entity tag is the same for all content
 * codings, so it is weak (RFC 9110, section 8.8.1).
 */
export type Range = { etag: string; after: number; last: number; mark: string }

/** Returns the range of a list. Throws StoreUnavailable if `head` lacks its mark. */
export function rangeOf(after: number, last: number, head: Head): Range {
  const mark = last === head.position ? head.mark : head.markOf(last)
  if (mark === undefined || !/^[\w-]*$/.test(mark))
    throw new StoreUnavailable('unread', `the mark of plant ${last} is missing or damaged`)
  return { etag: `W/"${itemFormat}.${after}-${last}.${mark}"`, after, last, mark }
}

/**
 * Matches a list of entity tags (RFC 9110, section 13.1.2), which may have empty elements. White space is matched by
 * exactly one part of the pattern, so that the time to refuse a header is linear in its length.
 */
const tagList = /^(?:[\t ]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[\t ]*)?(?:,|$))+$/

/** True if `If-None-Match` is `*` or contains the entity tag (weak comparison). False for a malformed header. */
export function isNamed(etag: string, ifNoneMatch: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  if (!tagList.test(ifNoneMatch)) return false
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(etag.slice(2)) ?? false
}

/** Builds the cursor of the page after a range: the range's last position in base 36, and its mark. */
export const cursorOf = ({ last, mark }: Pick<Range, 'last' | 'mark'>) => `${last.toString(36)}-${mark}`

/** Parses a cursor that has the form of `ListQuery.after`; undefined if it is not the canonical form of `cursorOf`. */
export function readCursor(cursor: string): { after: number; mark: string } | undefined {
  // Parsing stops at the hyphen.
  const [after, mark] = [Number.parseInt(cursor, 36), cursor.slice(cursor.indexOf('-') + 1)]
  return cursorOf({ last: after, mark }) === cursor ? { after, mark } : undefined
}

/** Builds the `Link` to the page after a range (RFC 8288). `path`: the path of the list as clients see it. */
export const linkTo = (range: Range, path: string, query: object) =>
  `<${path}?${new URLSearchParams({ ...query, after: cursorOf(range) })}>; rel="next"`
