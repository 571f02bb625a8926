// What each status means, and the headers that come with it: the answers of the contract.
import type { TSchema } from '@sinclair/typebox'
import { ref } from './component.ts'
import { Plant, PlantList } from './plant.ts'
import { Problem } from './problem.ts'

type Header = { type: 'string' | 'integer'; description: string; example: string | number }

const etag: Header = {
  type: 'string',
  description: 'Names this list of this store; send it back in `If-None-Match` (RFC 9110, 8.8.3).',
  example: '"mWb3nZcQ.4f1c0a9be2d7.1.0-100"',
}
const link: Header = {
  type: 'string',
  description: 'The next page, when there are more plants than `limit` (RFC 8288).',
  example: '</plants?after=2s-qM0f3zj9c1E&limit=100>; rel="next"',
}
const cacheControl: Header = {
  type: 'string',
  description: 'A cache may keep the list for its own user, and has to ask before it uses it again.',
  example: 'private, no-cache',
}
const retryAfter: Header = {
  type: 'integer',
  description: 'After how many seconds to try again (RFC 9110, 10.2.3).',
  example: 1,
}
const challenge: Header = {
  type: 'string',
  description: 'What the request lacks (RFC 6750, section 3).',
  example: 'Bearer realm="plant-store", error="invalid_token"',
}
const scopeChallenge: Header = {
  ...challenge,
  example: 'Bearer realm="plant-store", error="insufficient_scope", scope="plants:write"',
}
const allow: Header = {
  type: 'string',
  description: 'The methods of this path (RFC 9110, 10.2.1).',
  example: 'GET, HEAD, POST',
}

function json(schema: TSchema, description: string, headers?: Record<string, Header>) {
  return {
    description,
    ...(headers && { headers }),
    content: { 'application/json': { schema: ref(schema) } },
  }
}

function problem(description: string, headers?: Record<string, Header>) {
  return {
    description,
    ...(headers && { headers }),
    content: { 'application/problem+json': { schema: ref(Problem) } },
  }
}

const always = {
  400: problem('The request is not valid; `errors` names every fault and where it is.'),
  401: problem('The token is missing, wrong, expired or revoked.', { 'WWW-Authenticate': challenge }),
  403: problem('The token lacks the scope of this operation.', { 'WWW-Authenticate': scopeChallenge }),
  405: problem('The path does not have this method.', { Allow: allow }),
  408: problem('The request did not arrive in time.'),
  414: problem('The URL is too long.'),
  417: problem('The expectation cannot be met: only `100-continue` is understood.'),
  431: problem('The header section is too large.'),
  500: problem('The fault is ours.'),
  503: problem(
    'The store cannot take the request now. `detail` says when the outcome of an addition is unknown.',
    {
      'Retry-After': retryAfter,
    },
  ),
}

export const createPlantResponses = {
  200: json(Plant, 'The plant is in the store, on stable storage.'),
  ...always,
  409: problem('A plant with this id already exists with a different name or tag. Nothing was changed.'),
  412: problem('The request carries `If-Match` or `If-None-Match`. Nothing was added.'),
  413: problem('The body is larger than 16 KiB.'),
  415: problem('The body is not JSON in UTF-8 without a content encoding.'),
}

export const listPlantsResponses = {
  200: json(PlantList, 'The plants.', { ETag: etag, Link: link, 'Cache-Control': cacheControl }),
  304: {
    type: 'null',
    description: 'The list is still the one that `If-None-Match` names.',
    headers: { ETag: etag, Link: link, 'Cache-Control': cacheControl },
  },
  ...always,
  412: problem('The list is not one that `If-Match` names.'),
}
