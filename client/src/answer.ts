// What an answer says: data, or a problem.
import type { Problem } from './errors.ts'

/** An answer with its body read: `problem` when it is no success; neither when nothing has changed (304). */
export type Answer<T> = { headers: Headers; data?: T; problem?: Problem }

/** `isWanted` knows a success of the service; `hear` is called for each part of its body; `isKept`: 304 is a success, too. */
export type Reading<T> = {
  isWanted: (body: unknown) => body is T
  hear: () => void
  isKept?: boolean
}

/** Reads a body. Throws when the answer is a success, but broken off or not from the service. */
export async function readAnswer<T>(
  response: Response,
  { isWanted, hear, isKept }: Reading<T>,
): Promise<Answer<T>> {
  const { headers, ok, status } = response
  if (status === 304 && isKept) return { headers }
  if (ok) {
    const data: unknown = await listen(response, hear).json()
    if (!isWanted(data)) throw new TypeError('The response is not from the Plant Store')
    return { headers, data }
  }
  const body: unknown = await response.json().catch(() => undefined)
  return { headers, problem: { ...describe(response), ...(isProblem(body) && body), status } }
}

/** Calls `hear` for the answer, and for each part of its body where parts can be seen. */
function listen(response: Response, hear: () => void): Pick<Response, 'json'> {
  hear()
  const transform = (part: Uint8Array, passed: TransformStreamDefaultController<Uint8Array>) => {
    hear()
    passed.enqueue(part)
  }
  return response.body
    ? new Response(response.body.pipeThrough(new TransformStream({ transform })))
    : response
}

/** Others have problems too, with `errors` of other forms. */
function isProblem(body: unknown): body is Problem {
  const { type, errors = [] } = (body ?? {}) as Partial<Problem>
  return typeof type === 'string' && Array.isArray(errors) && errors.every((fault) => fault?.detail)
}

/**
 * Describes an answer that is not from the service, such as a proxy's error page or a redirect: only its status is
 * known.
 */
function describe({ statusText }: Response) {
  const detail = 'The response is not from the Plant Store: check baseUrl and any proxy in between.'
  return { type: 'about:blank', title: statusText, detail }
}

/** How long to wait at least: seconds, or until a date (RFC 9110, 10.2.3). 0 when nothing is said. */
export function readRetryAfter(headers: Headers): number {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Math.max(0, ms) || 0
}

/** Where the next page starts: `after` of the link to it (RFC 8288). Undefined on the last page. */
export function readNext(headers: Headers): string | undefined {
  const [, after] = /[?&]after=([^&>]+)[^>]*>; *rel="next"/.exec(headers.get('link') ?? '') ?? []
  return after && decodeURIComponent(after)
}
