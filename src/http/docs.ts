// The contract: what the OpenAPI document says beside the schemas of the routes.
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

const document = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description:
      'A durable, append-only list of plants. Every answer of success means that the plant is on stable storage; ' +
      'every list holds what was acknowledged before. Errors are problem details (RFC 9457).',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  components: {
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description: 'An access token, from `plant-store token create` or the first start of the service.',
      },
    },
  },
  security: [{ bearer: [] }],
} as const

/** Collects the contract from the schemas of the routes that are registered after it. `basePath` ends with a slash. */
export async function describeRoutes(app: FastifyInstance, basePath: string): Promise<void> {
  const url = basePath === '/' ? '/' : basePath.slice(0, -1)
  await app.register(swagger, {
    openapi: { ...document, servers: [{ url }] } as never,
    refResolver: { buildLocalReference: (json) => String(json.$id) },
  })
}
