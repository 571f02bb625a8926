// What Fastify compiles the schemas of a route with. Its own means are not even loaded.
import type { FastifyServerOptions } from 'fastify'
import { makeValidatorCompiler } from './validation.ts'

type Compilers = NonNullable<FastifyServerOptions['schemaController']>

/** One Ajv for all routes, and no serializers: what is sent is text already, so they would never be called. */
export function makeCompilers(): Compilers {
  const compile = makeValidatorCompiler()
  return {
    compilersFactory: {
      // Its type is that of the factories of Fastify's own package alone.
      buildValidator: () => compile as never,
      buildSerializer: () => () => JSON.stringify,
    },
  }
}
