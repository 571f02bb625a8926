// Conditional requests by entity tags (RFC 9110, section 13.1).
import type { FastifyRequest } from 'fastify'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from './problem-error.ts'

/** A representation, as far as conditions are concerned. */
type Tagged = { etag: string }

/**
 * Evaluates the conditions of a request (RFC 9110, section 13.2.2). `forms`: the representations that its client
 * accepts, best first. Returns the one that the client already has, if any. Throws `precondition-failed` when If-Match
 * is false; `what` is the subject of its detail.
 */
export function findCurrent<Form extends Tagged>(
  { headers }: FastifyRequest,
  forms: () => readonly Form[],
  what: string,
): Form | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch !== undefined && find(ifMatch, forms(), true) === undefined)
    throw new ProblemError(problems.otherForm(what))
  return ifNoneMatch === undefined ? undefined : find(ifNoneMatch, forms(), false)
}

/** Matches an element of a list of entity tags, possibly empty, and the comma or the end behind it. */
const element = /[\t ]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(,|$)/gy

/**
 * The first form that a condition names, by strong or by weak comparison (RFC 9110, section 8.8.3.2). `*` names any, a
 * malformed list none.
 */
function find<Form extends Tagged>(
  condition: string,
  forms: readonly Form[],
  strongly: boolean,
): Form | undefined {
  if (condition === '*') return forms[0]
  const only = forms.find(({ etag }) => etag === condition)
  if (only) return only
  const named = new Set<string>()
  let whole = false
  for (const [, weak, tag, end] of condition.matchAll(element)) {
    if (tag !== undefined && !(strongly && weak)) named.add(tag)
    whole ||= end === ''
  }
  return whole ? forms.find(({ etag }) => named.has(etag)) : undefined
}
