// If-None-Match (RFC 9110, section 13.1.2).

const entityTag = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/** Whether a condition names the entity tag, by the weak comparison that this header takes. `*` names any. */
export function etagMatches(condition: string, etag: string): boolean {
  if (condition === etag || condition.trim() === '*') return true
  for (const [, opaque] of condition.matchAll(entityTag)) if (opaque === etag) return true
  return false
}
