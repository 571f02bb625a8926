// The headers of answers, as the contract describes them.
import { problems } from './problems.ts'

const string = { type: 'string' }

/** `components.headers`. A header that is `required` is on every answer that lists it. */
export const headers = {
  ETag: {
    description: 'Names the list; send it back in `If-None-Match` (RFC 9110, 8.8.3).',
    required: true,
    schema: string,
    example: 'W/"1.0-100.j8_mOE1Q-9Q"',
  },
  Link: {
    description: 'The next page, if there are more plants than `limit` (RFC 8288).',
    schema: string,
    example: '</plants?limit=100&after=100-j8_mOE1Q-9Q>; rel="next"',
  },
  'Cache-Control': {
    description: '`private, no-cache`: check the list before each use. `no-store`: do not store an error.',
    required: true,
    schema: { ...string, enum: ['private, no-cache', 'no-store'] },
    example: 'no-store',
  },
  Vary: {
    description: 'The answer depends on these request headers (RFC 9110, 12.5.5).',
    required: true,
    schema: string,
    example: 'Accept-Encoding',
  },
  'Content-Encoding': {
    description: 'The compression of the list, chosen by `Accept-Encoding`.',
    schema: string,
    example: 'gzip',
  },
  'Accept-Encoding': {
    description: 'Sent if the body has a content encoding: none is supported (RFC 9110, 15.5.16).',
    schema: { ...string, enum: ['identity'] },
    example: 'identity',
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt (RFC 9110, 10.2.3).',
    required: true,
    schema: { type: 'integer', format: 'int32', minimum: 0, maximum: 86_400 },
    example: 1,
  },
  'RateLimit-Policy': {
    description:
      'If rates are limited: `q` requests per `w` seconds (draft-ietf-httpapi-ratelimit-headers-10).',
    schema: string,
    example: '"default";q=100;w=1',
  },
  RateLimit: {
    description: 'If rates are limited: requests left (`r`), and seconds until the next window (`t`).',
    schema: string,
    example: '"default";r=50;t=1',
  },
  'WWW-Authenticate': {
    description: 'What the request lacks (RFC 6750, section 3).',
    required: true,
    schema: string,
    examples: {
      missing: { summary: problems.noToken.detail, value: 'Bearer realm="plant-store"' },
      invalid: {
        summary: problems.badToken.detail,
        value: 'Bearer realm="plant-store", error="invalid_token"',
      },
      scope: {
        summary: problems.noScope('plants:write').detail,
        value: 'Bearer realm="plant-store", error="insufficient_scope", scope="plants:write"',
      },
    },
  },
  'X-Content-Type-Options': {
    description: 'Browsers must not guess another media type.',
    required: true,
    schema: { ...string, enum: ['nosniff'] },
    example: 'nosniff',
  },
  'X-Request-Id': {
    description: 'Identifies the request in the log of the service.',
    schema: string,
    example: '9f2c41d07b-1x',
  },
} as const

/** Describes the headers for a service whose paths are below `basePath`, which ends with a slash. */
export function describeHeaders(basePath: string) {
  const { Link } = headers
  return { ...headers, Link: { ...Link, example: Link.example.replace('/', basePath) } }
}

export type HeaderName = keyof typeof headers
