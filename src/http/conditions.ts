// The conditions of a request, which name entity tags (RFC 9110, section 13.1).
import type { FastifyRequest } from 'fastify'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from './problem-error.ts'

/** A form of what is asked for, as far as conditions are concerned. */
type Tagged = { etag: string }

/**
 * Evaluates the conditions of a request (RFC 9110, section 13.2.2). `forms`: all that its client accepts, the one that it
 * would get first. Returns the form that the client has; undefined when it has none of them. Throws when If-Match is
 * false; `what` is its subject.
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

/** The first form that If-None-Match names, by the weak comparison. `*` names any, a malformed list none. */
function findWeakly<Form extends Tagged>(condition: string, forms: readonly Form[]): Form | undefined {
  return find(condition, forms, () => true)
}

/** The first form that If-Match names, by the strong comparison. `*` names any, a malformed list none. */
function findStrongly<Form extends Tagged>(condition: string, forms: readonly Form[]): Form | undefined {
  return find(condition, forms, (weak) => !weak)
}

/** One element of a list of entity tags, which may be empty, and what ends it: a comma or the end of the list. */
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
