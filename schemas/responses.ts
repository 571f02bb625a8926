// The responses of the contract for OpenAPI: descriptions and headers.
import { examples, summaries } from './examples.ts'
import { listShown, Plant, PlantList } from './plant.ts'
import { Problem } from './problem.ts'
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

type HeaderName = keyof typeof headers
type ResponseName = keyof typeof examples | 'NotModified'

function respond(description: string, names: HeaderName[] = []) {
  const all: HeaderName[] = [...names, 'X-Content-Type-Options', 'X-Request-Id']
  const refs = all.map((name) => [name.replace('-Of-Problems', ''), { $ref: `#/components/headers/${name}` }])
  return { description, headers: Object.fromEntries(refs) }
}

/** Makes a response with a body, and all of its examples. */
function answer(
  name: keyof typeof examples,
  description: string,
  names: HeaderName[] = [],
  schema: { $id?: string } = Problem,
) {
  const [media, further] =
    schema === Problem
      ? ['application/problem+json', ['Cache-Control-Of-Problems'] as const]
      : ['application/json', []]
  const shown = Object.entries<object & { detail?: string }>(examples[name]).map(([key, value]) => [
    key,
    { summary: value.detail ?? summaries[key], value },
  ])
  const $ref = `#/components/schemas/${schema.$id}`
  const content = { [media]: { schema: { $ref }, examples: Object.fromEntries(shown) } }
  return { [name]: { ...respond(description, [...names, ...further]), content } }
}

/** Further headers of answers to requests with a valid token. */
const ofRate: HeaderName[] = ['RateLimit-Policy', 'RateLimit']
const ofList: HeaderName[] = ['ETag', 'Link', 'Cache-Control', 'Vary', ...ofRate]

/** `components.responses`. */
export const responses: Record<string, ReturnType<typeof respond>> = {
  NotModified: respond('The list is still the one that `If-None-Match` names.', ofList),
  ...answer('PlantAdded', 'The plant is in the store, on stable storage.', ofRate, Plant),
  ...answer('PlantsListed', 'The plants.', ['Content-Encoding', ...ofList], PlantList),
  ...answer('InvalidAddition', 'The request is not valid; `errors` names every fault and its place.', ofRate),
  ...answer('InvalidList', 'The request is not valid; `errors` names every fault and its place.', ofRate),
  ...answer('Unauthorized', 'The token is missing, wrong, expired or revoked.', ['WWW-Authenticate']),
  ...answer('Forbidden', 'The token lacks the scope of this operation.', ['WWW-Authenticate', ...ofRate]),
  ...answer('RequestTimeout', problems.late.detail),
  ...answer(
    'IdConflict',
    `A plant with this id already exists with a different ${listShown('or')}. Nothing was changed.`,
    ofRate,
  ),
  ...answer(
    'ConditionalAddition',
    'The request carries `If-Match` or `If-None-Match`. Nothing was added.',
    ofRate,
  ),
  ...answer('OtherList', 'The list is not one that `If-Match` names.', ofRate),
  ...answer('ContentTooLarge', problems.bodyTooLarge.detail, ofRate),
  ...answer('UriTooLong', problems.urlTooLong.detail),
  ...answer('UnsupportedMediaType', 'The body is not JSON in UTF-8 without a content encoding.', [
    'Accept-Encoding',
    ...ofRate,
  ]),
  ...answer('ExpectationFailed', 'The expectation is not supported: only `100-continue` is.'),
  ...answer(
    'TooManyRequests',
    'The token sent too many requests in a short time, or too many without a valid one came from this address. Nothing ' +
      'was changed.',
    ['Retry-After', ...ofRate],
  ),
  ...answer('HeadersTooLarge', problems.headTooLarge.detail),
  ...answer('InternalError', 'Internal error.', ofRate),
  ...answer(
    'AdditionUnavailable',
    'The store cannot take the request now. `type` tells whether nothing was added or the outcome is unknown.',
    ['Retry-After', ...ofRate],
  ),
  ...answer('ListUnavailable', 'The list cannot be read now.', ['Retry-After', ...ofRate]),
}

const always: Record<string, ResponseName> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  408: 'RequestTimeout',
  414: 'UriTooLong',
  417: 'ExpectationFailed',
  429: 'TooManyRequests',
  431: 'HeadersTooLarge',
  500: 'InternalError',
}

/** The responses of each operation by its id, then by status. */
export const operationResponses: Record<string, Record<string, ResponseName>> = {
  createPlant: {
    ...always,
    200: 'PlantAdded',
    400: 'InvalidAddition',
    409: 'IdConflict',
    412: 'ConditionalAddition',
    413: 'ContentTooLarge',
    415: 'UnsupportedMediaType',
    503: 'AdditionUnavailable',
  },
  listPlants: {
    ...always,
    200: 'PlantsListed',
    304: 'NotModified',
    400: 'InvalidList',
    412: 'OtherList',
    503: 'ListUnavailable',
  },
}
