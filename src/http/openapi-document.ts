// The contract as an OpenAPI document, from the rows of the operations and the shared parts of `schemas/`. The module is
// loaded on demand, as most processes are never asked for it.
import type { TObject, TSchema } from '@sinclair/typebox'
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types'
import { requestExamples } from '../../schemas/examples.ts'
import { headers } from '../../schemas/headers.ts'
import { components } from '../../schemas/index.ts'
import { operationResponses, responses } from '../../schemas/responses.ts'
import { version } from '../runtime/version.ts'
import { discoveryUrls, type Issuer } from '../tokens/oidc/issuer.ts'
import { methodsOf, type Operation } from './operation.ts'

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

/** Makes the contract. `basePath` ends with a slash; with an `issuer`, its tokens are a second security scheme. */
export function makeContract(
  basePath: string,
  operations: readonly Operation[],
  issuer?: Issuer,
): OpenApi.Document {
  const oidc = issuer && describeIssuer(issuer)
  const parameters = operations.flatMap(({ schema }) => describeParameters(schema))
  const paths: OpenApi.PathsObject = {}
  for (const operation of operations)
    for (const method of methodsOf(operation)) {
      const described = { [method.toLowerCase()]: describeOperation(operation, method) }
      paths[operation.url] = { ...paths[operation.url], ...described }
    }
  const document = {
    openapi: '3.1.0',
    info: describeService(basePath),
    components: {
      securitySchemes: { bearer, ...(oidc && { oidc }) },
      schemas: Object.fromEntries(components.map((schema) => [schema.$id, schema])),
      headers,
      parameters: Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter])),
      responses,
    },
    paths,
    servers: [{ url: basePath === '/' ? '/' : basePath.slice(0, -1) }],
    security: [{ bearer: [] }, ...(oidc ? [{ oidc: [] }] : [])],
    tags: [
      {
        name: 'plants',
        description: 'The list of plants. It only grows: plants are never changed or removed.',
      },
    ],
  }
  return finish(document, basePath)
}

function describeIssuer(issuer: Issuer): OpenApi.SecuritySchemeObject {
  const [openIdConnectUrl] = discoveryUrls(issuer)
  return { type: 'openIdConnect', openIdConnectUrl, description: 'An access token (JWT) of the issuer.' }
}

function describeService(basePath: string): OpenApi.InfoObject {
  return {
    title: 'Plant Store',
    version,
    summary: 'Add plants, list plants.',
    // Links of the document itself have to be absolute; those in Markdown need not be.
    description: `${introduction}\nThe [guide](${basePath}docs/guide) shows each step.\n`,
    contact: { name: 'Plant Store' },
    license: { name: 'MIT', identifier: 'MIT' },
  }
}

function describeParameters({ querystring, headers }: Operation['schema']): OpenApi.ParameterObject[] {
  const describe = (place: 'query' | 'header', { properties, required = [] }: TObject) =>
    Object.entries(properties).map(([name, { description, examples, ...schema }]) => ({
      schema,
      ...(examples && { example: examples[0] }),
      in: place,
      name,
      required: required.includes(name),
      description: String(description),
    }))
  return [...describe('query', querystring), ...(headers ? describe('header', headers) : [])]
}

/** HEAD has the headers of GET and no body, errors included (RFC 9110, section 9.3.2). */
function describeOperation({ schema }: Operation, method: string): OpenApi.OperationObject {
  const { querystring: _, headers: __, body, ...about } = schema
  const names = operationResponses[about.operationId] as Record<string, string>
  const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })
  const isHead = method === 'HEAD'
  const describe = (name: string) => {
    const { content: _, ...bodiless } = responses[name] as OpenApi.ResponseObject
    return isHead ? bodiless : refer('responses', name)
  }
  return {
    ...about,
    ...(isHead && asHead(about)),
    tags: ['plants'],
    parameters: describeParameters(schema).map(({ name }) => refer('parameters', name)),
    ...(body && { requestBody: { content: describeBody(body), required: true } }),
    responses: Object.fromEntries(Object.entries(names).map(([status, name]) => [status, describe(name)])),
  }
}

function asHead({ operationId, summary }: { operationId: string; summary: string }) {
  return {
    operationId: operationId.replace(/^[a-z]+/, 'head'),
    summary: `${summary}: headers only`,
    description:
      'Returns the headers that GET returns, without a body: to check whether anything has changed.',
  }
}

function describeBody(schema: TSchema) {
  return { 'application/json': { schema, examples: requestExamples[schema.$ref] ?? {} } }
}

/** Copies a tree, with references to components as OpenAPI has them, and the paths in examples below the base path. */
function finish(document: object, basePath: string): OpenApi.Document {
  return JSON.parse(JSON.stringify(document), (key, value) => {
    if (key === '$id') return undefined
    if (typeof value !== 'string') return value
    if (key === '$ref') return value.replace(/^(\w+)#$/, '#/components/schemas/$1')
    return value.replace(/^(<?)\/(problems\/|plants\?)/, `$1${basePath}$2`)
  })
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
