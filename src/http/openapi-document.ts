// The contract as an OpenAPI document, made by @fastify/swagger from the operations and the shared parts of `schemas/`. The module is
// loaded on demand, as most processes are never asked for it.
import swagger from '@fastify/swagger'
import fastify from 'fastify'
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types'
import { requestExamples } from '../../schemas/examples.ts'
import { headers } from '../../schemas/headers.ts'
import { components } from '../../schemas/index.ts'
import { operationResponses, responses } from '../../schemas/responses.ts'
import { version } from '../runtime/version.ts'
import { discoveryUrls, type Issuer } from '../tokens/oidc/issuer.ts'
import { methodsOf, type Operation } from './operation.ts'
import { makeCompilers } from './validation.ts'

export { stringify as toYaml } from 'yaml'

const introduction =
  'A durable, append-only list of plants. Every successful addition is on stable storage, and every list contains all ' +
  'plants acknowledged before the request.\n\n' +
  'Every error is a problem (RFC 9457), whose `type` leads to a page that explains what to do. Any other path is 404, ' +
  'any other method of `/plants` is 405 with `Allow`, a method that HTTP does not define is 501, and `OPTIONS` is 204 ' +
  'with `Allow`.\n'

const bearer: OpenApi.SecuritySchemeObject = {
  type: 'http',
  scheme: 'bearer',
  description: 'An access token, from `plant-store token create` or the first start of the service.',
}

/**
 * Makes the contract, from an app that has the operations and serves no requests. `basePath` ends with
 * a slash; with an `issuer`, its tokens are a second security scheme.
 */
export async function makeContract(
  basePath: string,
  operations: readonly Operation[],
  issuer?: Issuer,
): Promise<OpenApi.Document> {
  const app = fastify({ exposeHeadRoutes: false, schemaController: makeCompilers() })
  for (const schema of components) app.addSchema(schema)
  await app.register(swagger, {
    openapi: describeService(basePath, issuer) as never,
    refResolver: { buildLocalReference: ({ $id }) => String($id) },
  })
  for (const operation of operations) {
    const { url, schema } = operation
    app.route({ method: methodsOf(operation), url: basePath.slice(0, -1) + url, schema, handler: String })
  }
  await app.ready()
  return finish(app.swagger() as OpenApi.Document, basePath)
}

function describeIssuer(issuer: Issuer): OpenApi.SecuritySchemeObject {
  const [openIdConnectUrl] = discoveryUrls(issuer)
  return { type: 'openIdConnect', openIdConnectUrl, description: 'An access token (JWT) of the issuer.' }
}

/** What the document says beside the operations. */
function describeService(basePath: string, issuer?: Issuer): Partial<OpenApi.Document> {
  const oidc = issuer && describeIssuer(issuer)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version,
      summary: 'Add plants, list plants.',
      // Links of the document itself have to be absolute; those in Markdown need not be.
      description: `${introduction}\nThe [guide](${basePath}docs/guide) shows each step.\n`,
      contact: { name: 'Plant Store' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '/' ? '/' : basePath.slice(0, -1) }],
    tags: [
      {
        name: 'plants',
        description: 'The list of plants. It only grows: plants are never changed or removed.',
      },
    ],
    components: { securitySchemes: { bearer, ...(oidc && { oidc }) } },
    security: [{ bearer: [] }, ...(oidc ? [{ oidc: [] }] : [])],
  }
}

/** Moves what operations share into `components`. The copy shares no nodes; paths in examples are below the base path. */
function finish(made: OpenApi.Document, basePath: string): OpenApi.Document {
  const parameters: Record<string, OpenApi.ParameterObject> = {}
  const paths = Object.entries(made.paths as object).map(([path, item]) => {
    const described = Object.entries(item as Record<string, Described>).map(([method, operation]) => {
      const { parameters: own = [] } = operation
      for (const parameter of own) parameters[parameter.name] = parameter
      return [method, describeOperation(operation, method === 'head')]
    })
    return [path, Object.fromEntries(described)]
  })
  const shared = { ...made.components, headers, parameters, responses }
  const document = { ...made, components: shared, paths: Object.fromEntries(paths) }
  return JSON.parse(JSON.stringify(document), (_key, value) =>
    typeof value === 'string' ? value.replace(/^(<?)\/(problems\/|plants\?)/, `$1${basePath}$2`) : value,
  )
}

/** An operation as @fastify/swagger describes it. */
type Described = Omit<OpenApi.OperationObject, 'parameters'> & {
  operationId: keyof typeof operationResponses
  parameters?: OpenApi.ParameterObject[]
  requestBody?: OpenApi.RequestBodyObject
}

/** HEAD has the headers of GET and no body, errors included (RFC 9110, section 9.3.2). */
function describeOperation(operation: Described, isHead: boolean): object {
  const { operationId, summary, parameters = [], requestBody } = operation
  const describe = (name: string) => {
    const { content: _, ...bodiless } = responses[name] as OpenApi.ResponseObject
    return isHead ? bodiless : { $ref: `#/components/responses/${name}` }
  }
  for (const body of Object.values(requestBody?.content ?? {}))
    Object.assign(body, { examples: requestExamples[operationId] })
  const names = Object.entries(operationResponses[operationId] as Record<string, string>)
  return {
    ...operation,
    ...(isHead && {
      operationId: operationId.replace(/^[a-z]+/, 'head'),
      summary: `${summary}: headers only`,
      description:
        'Returns the headers that GET returns, without a body: to check whether anything has changed.',
    }),
    tags: ['plants'],
    parameters: parameters.map(({ name }) => ({ $ref: `#/components/parameters/${name}` })),
    responses: Object.fromEntries(names.map(([status, name]) => [status, describe(name)])),
  }
}

/** Translates the contract to OpenAPI 3.0, for tools that do not know 3.1. */
export function toOpenApi30({ info, ...rest }: OpenApi.Document): object {
  const { summary: _, license, ...olderInfo } = info
  const url = `https://spdx.org/licenses/${license?.identifier}.html`
  const older = JSON.parse(JSON.stringify(rest), function (this: Record<string, unknown>, key, value) {
    // In a schema `examples` is a list; elsewhere it is a map, which 3.0 knows.
    if (key !== 'examples' || !Array.isArray(value)) return value
    this.example = value[0]
    return undefined
  })
  return { ...older, openapi: '3.0.3', info: { ...olderInfo, license: { name: license?.name, url } } }
}
