// The contract as an OpenAPI document, from the operations and the shared parts of `schemas/`. The module is loaded on
// demand, as most processes are never asked for it.
import type { FastifySchema } from 'fastify'
import { components } from '../../schemas/index.ts'
import { NewPlant } from '../../schemas/plant.ts'
import { headers, operationResponses, responses } from '../../schemas/responses.ts'
import { discoveryUrls, type Issuer } from '../tokens/oidc/issuer.ts'
import { version } from '../version.ts'

export { stringify as toYaml } from 'yaml'

const introduction =
  'A durable, append-only list of plants. Every successful addition is on stable storage, and every list contains all ' +
  'plants acknowledged before the request.\n\n' +
  'Every error is a problem (RFC 9457), whose `type` leads to a page that explains what to do. Any other path is 404, ' +
  'any other method of `/plants` is 405 with `Allow`, and `OPTIONS` is 204 with `Allow`.\n'

const info = {
  title: 'Plant Store',
  version,
  summary: 'Add plants, list plants.',
  contact: { name: 'Plant Store' },
  license: { name: 'MIT', identifier: 'MIT' },
}

const tags = [
  { name: 'plants', description: 'The list of plants. It only grows: plants are never changed or removed.' },
]

const bearer = {
  type: 'http',
  scheme: 'bearer',
  description: 'An access token, from `plant-store token create` or the first start of the service.',
}

// biome-ignore lint/suspicious/noExplicitAny: the document is rearranged as a tree, whatever its nodes are.
type Node = any

/** Schemas of routes, by path and method. */
export type Operations = Readonly<Record<string, Readonly<Record<string, FastifySchema>>>>

/** Makes the contract. `basePath` ends with a slash; with an `issuer`, its tokens are a second security scheme. */
export function makeContract(basePath: string, operations: Operations, issuer?: Issuer): Node {
  const shapes = Object.values(operations).flatMap((methods) => Object.values(methods))
  const parameters = Object.assign({}, ...shapes.map(describeParameters))
  const schemas = Object.fromEntries(components.map(({ $id, ...schema }) => [$id, schema]))
  const oidc = issuer && {
    type: 'openIdConnect',
    openIdConnectUrl: discoveryUrls(issuer)[0],
    description: 'An access token (JWT) of the issuer.',
  }
  const contract = {
    openapi: '3.1.0',
    // Links of the document itself have to be absolute; those in Markdown need not be.
    info: { ...info, description: `${introduction}\nThe [guide](${basePath}docs/guide) shows each step.\n` },
    components: { securitySchemes: { bearer, oidc }, schemas, headers, parameters, responses },
    paths: mapValues(operations, describePath),
    servers: [{ url: basePath === '/' ? '/' : basePath.slice(0, -1) }],
    security: [{ bearer: [] }, ...(oidc ? [{ oidc: [] }] : [])],
    tags,
  }
  return localize(contract, basePath)
}

function mapValues(object: Node, change: (value: Node, key: string) => Node): Node {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]))
}

/** Describes the operations of a path, and HEAD beside GET. */
function describePath(methods: Operations[string]): Node {
  const path = mapValues(methods, describeOperation)
  return path.get ? { ...path, head: asHead(path.get) } : path
}

function describeOperation(schema: Node): Node {
  const { operationId, summary, tags, description, body } = schema
  const parameters = Object.keys(describeParameters(schema))
  const answers = operationResponses[operationId as keyof typeof operationResponses]
  const content = { 'application/json': { schema: body, examples: requestExamples } }
  return {
    operationId,
    summary,
    tags,
    description,
    ...(parameters.length > 0 && {
      parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    }),
    ...(body && { requestBody: { required: true, content } }),
    responses: mapValues(answers, (name) => ({ $ref: `#/components/responses/${name}` })),
  }
}

/** Describes the parameters of an operation, by name. */
function describeParameters({ querystring, headers = {} }: Node): Node {
  const describeIn = (place: string) => (schema: Node, name: string) => {
    const { description, examples: [example] = [], ...rest } = schema
    return { name, in: place, required: false, description, schema: rest, example }
  }
  return {
    ...mapValues(querystring.properties, describeIn('query')),
    ...mapValues(headers.properties ?? {}, describeIn('header')),
  }
}

const requestExamples = Object.fromEntries(
  (NewPlant.examples as Node[]).map((value) => [value.id === undefined ? 'withoutId' : 'withId', { value }]),
)

/** Derives HEAD: the headers of GET and no body, errors included (RFC 9110, section 9.3.2). */
function asHead(list: Node): Node {
  return {
    ...list,
    operationId: 'headPlants',
    summary: 'Check the list',
    description:
      'Returns the headers of the list without a body, to check whether it has changed and where the next page is.',
    responses: mapValues(operationResponses.listPlants, (name) => ({
      ...responses[name as keyof typeof responses],
      content: undefined,
    })),
  }
}

/** Copies a tree, with the paths in examples below the base path, and references to schemas as the document has them. */
function localize(node: Node, basePath: string): Node {
  return JSON.parse(JSON.stringify(node), (key, value) => {
    if (key === '$ref') return value.replace(/^(\w+)#$/, '#/components/schemas/$1')
    return typeof value === 'string'
      ? value.replace(/^(<?)\/(problems\/|plants\?)/, `$1${basePath}$2`)
      : value
  })
}

/** Translates the contract to OpenAPI 3.0, for tools that do not know 3.1. */
export function toOpenApi30({ info, ...rest }: Node): Node {
  const { summary: _, license, ...olderInfo } = info
  // In a schema `examples` is a list; elsewhere it is a map, which 3.0 knows.
  const older = JSON.stringify(rest, (_key, value) =>
    Array.isArray(value?.examples) ? { ...value, example: value.examples[0], examples: undefined } : value,
  )
  return { ...JSON.parse(older), openapi: '3.0.3', info: { ...olderInfo, license: { name: license.name } } }
}
