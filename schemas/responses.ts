// The response schemas of both operations. Fastify serializes bodies with them, and @fastify/swagger describes them.
import type { Readable } from 'node:stream'
import { type TSchema, Type } from '@sinclair/typebox'
import { ref } from './component.ts'
import { type HeaderName, headers } from './headers.ts'
import { Plant, PlantList } from './plant.ts'
import { Problem } from './problem-details.ts'
import { problems } from './problems.ts'

/** Describes the headers of a response; the contract refers to `components.headers` instead. */
function pick(names: readonly HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, headers[name].schema]))
}

/** Describes the headers of a response to a request whose headers could be parsed. */
function withCommon(names: readonly HeaderName[]) {
  return pick([...names, 'X-Content-Type-Options', 'X-Request-Id'])
}

function success<T extends TSchema>(description: string, schema: T, names: readonly HeaderName[]) {
  return { description, headers: withCommon(names), content: { 'application/json': { schema: ref(schema) } } }
}

function problem(description: string, names: readonly HeaderName[] = []) {
  const content = { 'application/problem+json': { schema: ref(Problem) } }
  return { description, headers: withCommon([...names, 'Cache-Control']), content }
}

/** Headers of every response to a valid token, if requests are rate limited. */
const rateHeaders = ['RateLimit-Policy', 'RateLimit'] as const

/** Describes a problem response to a request whose headers could not be parsed. */
function earlyProblem(description: string) {
  return { ...problem(description), headers: pick(['Cache-Control', 'X-Content-Type-Options']) }
}

const listHeaders = ['ETag', 'Link', 'Cache-Control', 'Vary', ...rateHeaders] as const

/** Error responses of both operations. */
const errors = {
  400: problem('The request is not valid. `errors` lists its faults and their locations.', rateHeaders),
  401: problem('The token is missing, wrong, expired or revoked.', ['WWW-Authenticate']),
  403: problem('The token lacks the scope of this operation.', ['WWW-Authenticate', ...rateHeaders]),
  408: earlyProblem(problems.timeout.detail),
  414: problem(problems.urlTooLong.detail),
  429: problem('Too many requests with this token. Nothing was changed.', ['Retry-After', ...rateHeaders]),
  431: earlyProblem(problems.headTooLarge.detail),
  500: problem(problems.internal.detail, rateHeaders),
}

/** Responses of the operation that adds a plant. */
export const addPlantResponses = {
  200: success('The plant is in the store and on stable storage.', Plant, rateHeaders),
  ...errors,
  409: problem(`${problems.idTaken.detail} Nothing was changed.`, rateHeaders),
  413: problem(problems.bodyTooLarge.detail, rateHeaders),
  415: problem('The Content-Type is not JSON in UTF-8, or the body has a Content-Encoding.', [
    'Accept-Encoding',
    ...rateHeaders,
  ]),
  503: problem(
    'The store cannot add the plant right now. `type` shows whether nothing was added or the outcome is unknown.',
    ['Retry-After', ...rateHeaders],
  ),
}

/** The body of a list: bytes, which Fastify does not serialize. */
const listBytes = Type.Unsafe<Uint8Array | Readable>(PlantList)

/** Responses of the operation that lists plants. */
export const listPlantsResponses = {
  200: success('The plants.', listBytes, ['Content-Encoding', ...listHeaders]),
  304: Type.Unsafe<undefined>({
    type: 'null',
    description: 'The list has not changed: an entity tag in `If-None-Match` is current.',
    headers: withCommon(listHeaders),
  }),
  ...errors,
  503: problem('The list cannot be read right now.', ['Retry-After', ...rateHeaders]),
}
