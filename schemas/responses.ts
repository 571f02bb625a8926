// The responses of the contract for OpenAPI.
import { examples, summaries } from './examples.ts'
import type { HeaderName } from './headers.ts'
import { listShown, Plant, PlantList } from './plant.ts'
import { Problem } from './problem.ts'
import { problems } from './problems.ts'

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
