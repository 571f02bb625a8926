// CORS headers: @fastify/cors sets them on the router's answers, this on those below the router.
import type { Config } from '../config/load-config.ts'
import { rateLimitFields } from './access/rate-limit.ts'

export const exposedHeaders = [
  'ETag',
  'Link',
  ...rateLimitFields,
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
]

/** Preflights are answered alike for this long: browsers keep them for two hours at most. */
export const preflightSeconds = 7200

/** Makes the headers for a request whose head, as far as it was read, is this text. */
export function makeCorsHeaders(allowed: Config['corsOrigin']): (head: string) => Record<string, string> {
  if (allowed === false) return () => ({})
  const exposed = { 'access-control-expose-headers': exposedHeaders.join(', ') }
  // One origin is named whoever asks, like every origin.
  if (typeof allowed === 'string') return () => ({ 'access-control-allow-origin': allowed, ...exposed })
  return (head) => {
    const [, origin] = /^origin:[ \t]*(\S+)/im.exec(head) ?? []
    if (origin === undefined || (allowed !== true && !allowed.includes(origin))) return { vary: 'Origin' }
    return { 'access-control-allow-origin': origin, vary: 'Origin', ...exposed }
  }
}
