// The conditions of a request, which name entity tags (RFC 9110, section 13.1).
import type { FastifyRequest } from 'fastify'
import { ProblemError } from './problem-error.ts'

/**
 * Evaluates the conditions of a request (RFC 9110, section 13.2.2). `etags`: of all forms that its client accepts, the
 * best one first. Returns the place of the tag that the client has, -1 when it has none of them. Throws when If-Match is
 * false; `what` is its subject.
 */
export function findCurrent(
  { headers }: FastifyRequest,
  etags: () => readonly string[],
  what: string,
): number {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch !== undefined && findStrongly(ifMatch, etags()) < 0)
    throw new ProblemError('precondition-failed', `The ${what} is not one that If-Match names.`)
  return ifNoneMatch === undefined ? -1 : findWeakly(ifNoneMatch, etags())
}

/** Where the first tag is that If-None-Match names, by the weak comparison. `*` names any, a malformed list none. */
function findWeakly(condition: string, etags: readonly string[]): number {
  return find(condition, etags, () => true)
}

/** Where the first tag is that If-Match names, by the strong comparison. `*` names any, a malformed list none. */
function findStrongly(condition: string, etags: readonly string[]): number {
  return find(condition, etags, (weak) => !weak)
}

/** One element of a list of entity tags, which may be empty, and what ends it: a comma or the end of the list. */
const element = /[\t ]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(,|$)/gy

function find(condition: string, etags: readonly string[], counts: (weak: boolean) => boolean): number {
  if (condition === '*') return 0
  const only = etags.indexOf(condition)
  if (only >= 0) return only
  let found = -1
  let whole = false
  for (const [, weak, tag = '', end] of condition.matchAll(element)) {
    const place = counts(weak !== undefined) ? etags.indexOf(tag) : -1
    if (place >= 0 && (found < 0 || place < found)) found = place
    whole ||= end === ''
  }
  return whole ? found : -1
}
