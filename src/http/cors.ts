// CORS headers for answers below the router; @fastify/cors sets them on the others.
import type { Config } from '../config/load-config.ts'

export const exposedHeaders =
  'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id'

/** `Access-Control-Max-Age`; Chromium keeps a preflight for no longer than two hours. */
export const preflightSeconds = 7200

/** Makes a function that returns the headers for a request whose head, as far as it was read, is `head`. */
export function makeCorsHeaders(allowed: Config['corsOrigin']): (head: string) => Record<string, string> {
  if (allowed === false) return () => ({})
  const exposed = { 'access-control-expose-headers': exposedHeaders }
  // A single origin is sent to every client, like `*`.
  if (typeof allowed === 'string') return () => ({ 'access-control-allow-origin': allowed, ...exposed })
  return (head) => {
    const [, origin] = /^origin:[ \t]*(\S+)/im.exec(head) ?? []
    if (origin === undefined || (allowed !== true && !allowed.includes(origin))) return { vary: 'Origin' }
    return { 'access-control-allow-origin': origin, vary: 'Origin', ...exposed }
  }
}
