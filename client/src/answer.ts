// What an answer says: data, or a problem.
import type { Problem } from './errors.ts'

/** An answer with its body read: `problem` when it is no success. */
export type Answer<T> = { headers: Headers; data: T } | { headers: Headers; problem: Problem }

/** Reads a body. Throws when the answer is a success, but broken off or no JSON. */
export async function readAnswer<T>(response: Response): Promise<Answer<T>> {
  const { headers, ok, status } = response
  if (ok) return { headers, data: (await response.json()) as T }
  const body = (await response.json().catch(() => undefined)) as Problem | undefined
  const said = typeof body?.type === 'string' ? body : {}
  return { headers, problem: { ...describe(response), ...said, status } }
}

/** For what is not from the service, as a proxy's error page or a redirect: its status has to do. */
function describe({ statusText }: Response) {
  const detail = 'This answer is not from the Plant Store: check baseUrl, and what is in between.'
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
