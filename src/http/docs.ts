// The contract and its page: the OpenAPI document as YAML and JSON, and Swagger UI.
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { toOpenApi30, toYaml } from './document.ts'

/** The page loads nothing from elsewhere; Swagger UI sets styles from its script. */
const pagePolicy =
  "default-src 'none'; base-uri 'none'; connect-src 'self'; font-src 'self' data:; form-action 'none'; " +
  "frame-ancestors 'none'; img-src 'self' data:; script-src 'self'; style-src 'self' 'unsafe-inline'"

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
    reply.type('application/yaml').send(Buffer.from(toYaml(app.swagger()))),
  )
  app.get(`${basePath}openapi.json`, hidden, (_request, reply) =>
    reply.type('application/json').send(Buffer.from(JSON.stringify(app.swagger(), null, 2))),
  )
  app.get(`${basePath}openapi-3.0.json`, hidden, (_request, reply) =>
    reply.type('application/json').send(Buffer.from(JSON.stringify(toOpenApi30(app.swagger()), null, 2))),
  )
}
