// Reads a response of the service: data, or a problem.
import type { Problem } from './errors.ts'

/**
 * A response with its parsed body: `data` of a success, `problem` of a failure, or neither if nothing has changed
 * (304).
 */
export type Answer<T> = { headers: Headers; data?: T; problem?: Problem }

/** `isWanted`: recognizes the body of a success; `onData`: called for each chunk of it; `isKept`: 304 is a success. */
export type Reading<T> = {
  isWanted: (body: unknown) => body is T
  onData: () => void
  isKept?: boolean
}

/** Reads a body. Throws if a success is truncated or not from the service. */
export async function readAnswer<T>(
  response: Response,
  { isWanted, onData, isKept }: Reading<T>,
): Promise<Answer<T>> {
  const { headers, ok, status } = response
  if (status === 304 && isKept) return { headers }
  if (ok) {
    const data: unknown = await listen(response, onData).json()
    if (!isWanted(data)) throw new TypeError('The response is not from the Plant Store')
    return { headers, data }
  }
  const body: unknown = await response.json().catch(() => undefined)
  return { headers, problem: { ...describe(response), ...(isProblem(body) && body), status } }
}

/** Calls `onData` for the response, and for each chunk of its body if it is a stream. */
function listen(response: Response, onData: () => void): Pick<Response, 'json'> {
  onData()
  const transform = (part: Uint8Array, passed: TransformStreamDefaultController<Uint8Array>) => {
    onData()
    passed.enqueue(part)
  }
  return response.body
    ? new Response(response.body.pipeThrough(new TransformStream({ transform })))
    : response
}

/** Other servers also send problems, with `errors` of other forms. */
function isProblem(body: unknown): body is Problem {
  const { type, errors = [] } = (body ?? {}) as Partial<Problem>
  return typeof type === 'string' && Array.isArray(errors) && errors.every((fault) => fault?.detail)
}

/**
 * Describes a response that is not from the service, such as a proxy's error page or a redirect, of which only the
 * status is known.
 */
function describe({ statusText }: Response) {
  const detail = 'The response is not from the Plant Store: check baseUrl and any proxy in between.'
  return { type: 'about:blank', title: statusText, detail }
}

/** The minimum wait in ms, from Retry-After in seconds or as a date (RFC 9110, section 10.2.3); 0 without the header. */
export function readRetryAfter(headers: Headers): number {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Math.max(0, ms) || 0
}

/** The start of the next page: `after` in the Link header (RFC 8288). Undefined on the last page. */
export function readNext(headers: Headers): string | undefined {
  const [, query] = /\?([^>]*)>; *rel="next"/.exec(headers.get('link') ?? '') ?? []
  return new URLSearchParams(query).get('after') ?? undefined
}
