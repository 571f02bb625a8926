// The parts of the contract (`app.swagger()`) that @fastify/swagger cannot read from the routes and their schemas.
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types'
import { makeExamples } from '../../../schemas/examples.ts'
import { describeHeaders } from '../../../schemas/headers.ts'
import { wellFormed } from '../../../schemas/plant.ts'
import { listProblemTypes } from '../../../schemas/problems.ts'
import { version } from '../../version.ts'
import { fill } from './pages.ts'

const bearer = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An access token. `plant-store token create --name NAME` creates one (in a clone: `npx plant-store`). The first ' +
    'start of the service also prints one.',
}

/**
 * Returns the options of @fastify/swagger. `basePath` ends with a slash; `openIdConnectUrl`: URL of the issuer's
 * metadata, if an issuer is set.
 */
export function describeContract(basePath: string, openIdConnectUrl?: string): FastifyDynamicSwaggerOptions {
  const oidc = { type: 'openIdConnect', openIdConnectUrl, description: 'A JWT from the issuer.' }
  const securitySchemes = { bearer, ...(openIdConnectUrl && { oidc }) }
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Plant Store',
        version,
        summary: 'Add plants, list plants.',
        description: fill(basePath, 'introduction.md'),
        contact: { name: 'Plant Store' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: basePath.slice(0, -1) || '/' }],
      tags: [{ name: 'plants', description: 'Plants are never changed or removed.' }],
      components: { securitySchemes },
      security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    } as Partial<OpenApi.Document>,
    refResolver: { buildLocalReference: ({ $id }) => String($id) },
    // Routes without a tag are pages.
    hideUntagged: true,
    transformObject: (made) => complete(Object(made).openapiObject, basePath),
  }
}

type Content = Record<string, { examples?: unknown }>
type Described = {
  operationId: string
  requestBody?: { content: Content }
  responses: Record<number, { headers?: Record<string, object>; content?: Content }>
}

/** Adds examples, replaces headers with references, and removes our custom keyword. Returns a deep copy. */
function complete(document: OpenApi.Document, basePath: string): OpenApi.Document {
  const { components, paths } = document
  const examples = makeExamples(basePath)
  const operations: Described[] = Object.values(paths ?? {}).flatMap((path) => Object.values(path as object))
  for (const { operationId, requestBody, responses } of operations) {
    const own = examples[operationId]
    for (const media of Object.values(requestBody?.content ?? {})) media.examples = own?.request
    for (const [status, { headers, content }] of Object.entries(responses)) {
      for (const name in headers) headers[name] = { $ref: `#/components/headers/${name}` }
      for (const media of Object.values(content ?? {})) media.examples = own?.responses[+status]
    }
  }
  const ProblemType = { ...components?.schemas?.ProblemType, enum: listProblemTypes(basePath) }
  const schemas = { ...components?.schemas, ProblemType }
  const shared = { ...components, schemas, headers: describeHeaders(basePath) }
  const omitOwn = (name: string, value: unknown) => (name === wellFormed ? undefined : value)
  return JSON.parse(JSON.stringify({ ...document, components: shared }, omitOwn))
}
