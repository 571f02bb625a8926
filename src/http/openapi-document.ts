// The contract as an OpenAPI document, from the operations and the shared parts of `schemas/`. The module is loaded on
// demand, as most processes are never asked for it.
import swagger from '@fastify/swagger'
import fastify, { type FastifySchema } from 'fastify'
import { components as schemas } from '../../schemas/index.ts'
import { NewPlant } from '../../schemas/plant.ts'
import { headers, operationResponses, responses } from '../../schemas/responses.ts'
import { version } from '../runtime/version.ts'
import { discoveryUrls, type Issuer } from '../tokens/oidc/issuer.ts'

export { stringify as toYaml } from 'yaml'

const introduction =
  'A durable, append-only list of plants. Every successful addition is on stable storage, and every list contains all ' +
  'plants acknowledged before the request.\n\n' +
  'Every error is a problem (RFC 9457), whose `type` leads to a page that explains what to do. Any other path is 404, ' +
  'any other method of `/plants` is 405 with `Allow`, and `OPTIONS` is 204 with `Allow`.\n'

const bearer = {
  type: 'http',
  scheme: 'bearer',
  description: 'An access token, from `plant-store token create` or the first start of the service.',
} as const

// biome-ignore lint/suspicious/noExplicitAny: the document is rearranged as a tree, whatever its nodes are.
type Node = any

/** Schemas of routes, by path and method. */
export type Operations = Readonly<Record<string, Readonly<Record<string, FastifySchema>>>>

/**
 * Makes the contract, by a separate app that serves no requests. `basePath` ends with a slash; with an `issuer`, its
 * tokens are a second security scheme.
 */
export async function makeContract(basePath: string, operations: Operations, issuer?: Issuer): Promise<Node> {
  const compilersFactory = {
    buildValidator: () => (() => Boolean) as never,
    buildSerializer: () => () => String,
  }
  const app = fastify({ exposeHeadRoutes: false, schemaController: { compilersFactory } })
  for (const schema of schemas) app.addSchema(schema)
  await app.register(swagger, {
    openapi: describe(basePath) as never,
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    transformObject: (made) => shareParts((made as { openapiObject: Node }).openapiObject, basePath) as never,
  })
  const prefix = basePath.slice(0, -1)
  for (const [url, methods] of Object.entries(operations))
    for (const [method, schema] of Object.entries(methods))
      app.route({ method, url: prefix + url, schema, handler: String })
  try {
    await app.ready()
    const contract = app.swagger() as Node
    return issuer ? withIssuer(contract, issuer) : contract
  } finally {
    await app.close()
  }
}

/** Lets each operation accept tokens of the store or of the issuer. */
function withIssuer(contract: Node, issuer: Issuer): Node {
  const [openIdConnectUrl] = discoveryUrls(issuer)
  const description = 'An access token (JWT) of the issuer.'
  const oidc = { type: 'openIdConnect', openIdConnectUrl, description }
  const securitySchemes = { ...contract.components.securitySchemes, oidc }
  const components = { ...contract.components, securitySchemes }
  return { ...contract, components, security: [...contract.security, { oidc: [] }] }
}

/** The parts of the document that no schema has. */
function describe(basePath: string): Node {
  // Links of the document itself have to be absolute; those in Markdown need not be.
  const guide = `\nThe [guide](${basePath}docs/guide) shows each step.\n`
  const about = 'The list of plants. It only grows: plants are never changed or removed.'
  return {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version,
      summary: 'Add plants, list plants.',
      description: introduction + guide,
      contact: { name: 'Plant Store' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '/' ? '/' : basePath.slice(0, -1) }],
    tags: [{ name: 'plants', description: about }],
    components: { securitySchemes: { bearer } },
    security: [{ bearer: [] }],
  }
}

/** Moves what operations share into `components`, and adds HEAD beside GET. */
function shareParts(made: Node, basePath: string): Node {
  const components: Node = { ...made.components, headers, parameters: {}, responses }
  for (const operations of Object.values<Node>(made.paths)) {
    for (const operation of Object.values<Node>(operations)) refer(components, operation)
    const { post, get } = operations
    if (get) operations.head = asHead(get)
    if (post) post.requestBody.content['application/json'].examples = requestExamples
  }
  return rebase({ ...made, components }, basePath)
}

const requestExamples = Object.fromEntries(
  (NewPlant.examples as Node[]).map((value) => [value.id === undefined ? 'withoutId' : 'withId', { value }]),
)

/** Replaces the parameters and responses of an operation by references. */
function refer(components: Node, operation: Node): void {
  const names = operationResponses[operation.operationId as keyof typeof operationResponses]
  for (const [index, parameter] of (operation.parameters ?? []).entries()) {
    components.parameters[parameter.name] = parameter
    operation.parameters[index] = { $ref: `#/components/parameters/${parameter.name}` }
  }
  operation.responses = Object.fromEntries(
    Object.entries(names).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
  )
}

/** Derives HEAD: the headers of GET and no body, errors included (RFC 9110, section 9.3.2). */
function asHead(list: Node): Node {
  const bodiless = Object.entries(operationResponses.listPlants).map(([status, name]) => {
    const { content: _, ...response } = responses[name] as Node
    return [status, response]
  })
  return {
    ...list,
    operationId: 'headPlants',
    summary: 'Check the list',
    description:
      'Returns the headers of the list without a body, to check whether it has changed and where the next page is.',
    responses: Object.fromEntries(bodiless),
  }
}

/** Copies a tree, with the paths in examples below the base path. The copy shares no nodes. */
function rebase(node: Node, basePath: string): Node {
  return JSON.parse(JSON.stringify(node), (_key, value) =>
    typeof value === 'string' ? value.replace(/^(<?)\/(problems\/|plants\?)/, `$1${basePath}$2`) : value,
  )
}

/** Translates the contract to OpenAPI 3.0, for tools that do not know 3.1. */
export function toOpenApi30({ info, ...rest }: Node): Node {
  const { summary: _, license, ...olderInfo } = info
  const older = (node: Node): Node => {
    if (typeof node !== 'object' || node === null) return node
    if (Array.isArray(node)) return node.map(older)
    const entries = Object.entries<Node>(node).map(([name, value]) =>
      // In a schema `examples` is a list; elsewhere it is a map, which 3.0 knows.
      name === 'examples' && Array.isArray(value) ? ['example', value[0]] : [name, older(value)],
    )
    return Object.fromEntries(entries)
  }
  return { ...older(rest), openapi: '3.0.3', info: { ...olderInfo, license: { name: license.name } } }
}
