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
  if (ifMatch !== undefined && findStrongly(ifMatch, forms()) === undefined)
    throw new ProblemError(problems.otherForm(what))
  return ifNoneMatch === undefined ? undefined : findWeakly(ifNoneMatch, forms())
}

/** The first form that If-None-Match names, by weak comparison. `*` names any, a malformed list none. */
function findWeakly<Form extends Tagged>(condition: string, forms: readonly Form[]): Form | undefined {
  return find(condition, forms, () => true)
}

/** The first form that If-Match names, by strong comparison. `*` names any, a malformed list none. */
function findStrongly<Form extends Tagged>(condition: string, forms: readonly Form[]): Form | undefined {
  return find(condition, forms, (weak) => !weak)
}

/** Matches an element of a list of entity tags, possibly empty, and the comma or the end behind it. */
const element = /[\t ]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*)?(,|$)/gy

function find<Form extends Tagged>(
  condition: string,
  forms: readonly Form[],
  counts: (weak: boolean) => boolean,
): Form | undefined {
  if (condition === '*') return forms[0]
  const only = forms.find(({ etag }) => etag === condition)
  if (only) return only
  const named = new Set<string>()
  let whole = false
  for (const [, weak, tag, end] of condition.matchAll(element)) {
    if (tag !== undefined && counts(weak !== undefined)) named.add(tag)
    whole ||= end === ''
  }
  return whole ? forms.find(({ etag }) => named.has(etag)) : undefined
}
