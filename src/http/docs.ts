// The contract and its page: the OpenAPI document as YAML and JSON, and Swagger UI.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
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

/** The page loads nothing from elsewhere; Swagger UI sets styles from its script. */
const pagePolicy =
  "default-src 'none'; base-uri 'none'; connect-src 'self'; font-src 'self' data:; form-action 'none'; " +
  "frame-ancestors 'none'; img-src 'self' data:; script-src 'self'; style-src 'self' 'unsafe-inline'"

/** Collects the contract from the schemas of the routes that are registered after it. `basePath` ends with a slash. */
export async function describeRoutes(app: FastifyInstance, basePath: string): Promise<void> {
  const url = basePath === '/' ? '/' : basePath.slice(0, -1)
  await app.register(swagger, {
    openapi: { ...document, servers: [{ url }] } as never,
    refResolver: { buildLocalReference: (json) => String(json.$id) },
  })
}

/** Serves the contract and its page, without a token. */
export async function serveDocs(app: FastifyInstance, basePath: string): Promise<void> {
  await app.register(swaggerUi, {
    routePrefix: `${basePath}docs`,
    staticCSP: pagePolicy,
    uiConfig: { persistAuthorization: true, tryItOutEnabled: true },
    // The bar above the page shows the framework's logo, and offers to load documents from elsewhere.
    theme: {
      title: 'Plant Store',
      css: [{ filename: 'theme.css', content: '.swagger-ui .topbar { display: none }' }],
    },
  })
  const hidden = { schema: { hide: true }, exposeHeadRoute: true }
  app.head(`${basePath}docs`, hidden, (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', pagePolicy).send(),
  )
  for (const path of new Set(['/', basePath, basePath.slice(0, -1) || '/']))
    app.get(path, hidden, (_request, reply) => reply.redirect(`${basePath}docs`))
  app.get(`${basePath}openapi.yaml`, hidden, (_request, reply) =>
    reply.type('application/yaml').send(Buffer.from(app.swagger({ yaml: true }))),
  )
  app.get(`${basePath}openapi.json`, hidden, (_request, reply) =>
    reply.type('application/json').send(Buffer.from(JSON.stringify(app.swagger(), null, 2))),
  )
}
