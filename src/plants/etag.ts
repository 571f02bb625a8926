// Entity tags of lists, and the conditions that name them (RFC 9110, sections 8.8.3 and 13.1).
import { createHash } from 'node:crypto'

/** Makes strong tags: of a page of this store, by the page's name. A content coding would be named at the end. */
export function makeEtags(storeId: string): (page: { name: string }) => string {
  const store = createHash('sha256').update(storeId).digest('base64url').slice(0, 8)
  return ({ name }) => `"${store}.${name}"`
}

/** One element of a list of entity tags, which may be empty, and what ends it: a comma or the end of the list. */
const element = /[\t ]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(,|$)/gy

/** Whether If-None-Match names the tag, by the weak comparison. `*` names any, a malformed list none. */
export function matchesWeakly(condition: string, etag: string): boolean {
  return condition === etag || condition === '*' || names(condition, (_weak, tag) => tag === etag)
}

/** Whether If-Match names the tag, by the strong comparison. `*` names any, a malformed list none. */
export function matchesStrongly(condition: string, etag: string): boolean {
  return condition === etag || condition === '*' || names(condition, (weak, tag) => !weak && tag === etag)
}

function names(condition: string, matches: (weak: boolean, tag: string | undefined) => boolean): boolean {
  let found = false
  let whole = false
  for (const [, weak, tag, end] of condition.matchAll(element)) {
    found ||= matches(weak !== undefined, tag)
    whole ||= end === ''
  }
  return found && whole
}
