// The schemas of response headers, as the contract describes them.
import { Type } from '@sinclair/typebox'
import { problems } from './problems.ts'

const string = Type.String()

/** `components.headers`. A `required` header is present in every response that lists it. */
export const headers = {
  ETag: {
    description:
      'Identifies the current content of the list. Send it back in `If-None-Match` (RFC 9110, 8.8.3).',
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
    description:
      'Lists may be cached but must be revalidated (`private, no-cache`). Errors must not be cached (`no-store`).',
    required: true,
    schema: Type.String({ enum: ['private, no-cache', 'no-store'] }),
    example: 'no-store',
  },
  Vary: {
    description: 'The response depends on these request headers (RFC 9110, 12.5.5).',
    required: true,
    schema: string,
    example: 'Accept-Encoding',
  },
  'Content-Encoding': {
    description: 'The compression of the list, as negotiated by `Accept-Encoding`.',
    schema: string,
    example: 'gzip',
  },
  'Accept-Encoding': {
    description: 'Sent if the request body has a Content-Encoding; none is supported (RFC 9110, 15.5.16).',
    schema: Type.String({ enum: ['identity'] }),
    example: 'identity',
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt (RFC 9110, 10.2.3).',
    required: true,
    schema: Type.Integer({ format: 'int32', minimum: 0, maximum: 86_400 }),
    example: 1,
  },
  'RateLimit-Policy': {
    description:
      'Present if requests are rate limited: `q` requests are allowed per `w` seconds ' +
      '(draft-ietf-httpapi-ratelimit-headers-10).',
    schema: string,
    example: '"default";q=100;w=1',
  },
  RateLimit: {
    description:
      'Present if requests are rate limited: requests left (`r`), and seconds until the window ends (`t`).',
    schema: string,
    example: '"default";r=50;t=1',
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme, and the reason for the refusal (RFC 6750, section 3).',
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
    description: 'Tells browsers not to guess the media type.',
    required: true,
    schema: Type.String({ enum: ['nosniff'] }),
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
