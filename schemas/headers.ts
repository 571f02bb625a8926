// The headers of answers for OpenAPI.
import { problems } from './problems.ts'

const challenges = {
  missing: { summary: problems.noToken.detail, value: 'Bearer realm="plant-store"' },
  invalid: {
    summary: problems.badToken.detail,
    value: 'Bearer realm="plant-store", error="invalid_token"',
  },
  scope: {
    summary: problems.noScope('plants:write').detail,
    value: 'Bearer realm="plant-store", error="insufficient_scope", scope="plants:write"',
  },
}

const string = { type: 'string' }

/** `components.headers`. What is `required` is on every answer that lists it. */
export const headers = {
  ETag: {
    description: 'Identifies the list; send it back in `If-None-Match` (RFC 9110, 8.8.3).',
    required: true,
    schema: string,
    example: '"mWb3nZcQ.4f1c0a9be2d7.1.0-100"',
  },
  Link: {
    description: 'The next page, when there are more plants than `limit` (RFC 8288).',
    schema: string,
    example: '</plants?after=2s-qM0f3zj9c1E&limit=100>; rel="next"',
  },
  'Cache-Control': {
    description: 'A private cache may store the list, and has to revalidate it before each use.',
    required: true,
    schema: string,
    example: 'private, no-cache',
  },
  'Cache-Control-Of-Problems': {
    description: 'No cache may store an error.',
    required: true,
    schema: { ...string, enum: ['no-store'] },
    example: 'no-store',
  },
  Vary: {
    description: 'Each coding has its own form (RFC 9110, 12.5.5).',
    required: true,
    schema: string,
    example: 'Accept-Encoding',
  },
  'Content-Encoding': {
    description: 'How the list is compressed, when `Accept-Encoding` asks for it.',
    schema: string,
    example: 'gzip',
  },
  'Accept-Encoding': {
    description: 'When a content encoding is the fault: none is accepted (RFC 9110, 15.5.16).',
    schema: { ...string, enum: ['identity'] },
    example: 'identity',
  },
  'Retry-After': {
    description: 'Seconds to wait before trying again (RFC 9110, 10.2.3).',
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
    description: 'If rates are limited: requests left (`r`), and seconds until there is one more (`t`).',
    schema: string,
    example: '"default";r=50;t=1',
  },
  'WWW-Authenticate': {
    description: 'What the request lacks (RFC 6750, section 3).',
    required: true,
    schema: string,
    examples: challenges,
  },
  'X-Content-Type-Options': {
    description: 'Browsers must not guess another media type.',
    required: true,
    schema: { ...string, enum: ['nosniff'] },
    example: 'nosniff',
  },
  'X-Request-Id': {
    description: 'Identifies the request in the log of the service: its own id, or one made by the service.',
    required: true,
    schema: string,
    example: '9f2c41d07b-1x',
  },
}

export type HeaderName = keyof typeof headers
