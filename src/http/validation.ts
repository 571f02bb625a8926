// Validation of requests by the schemas of their routes.
import type { TSchema } from '@sinclair/typebox'
import type { ErrorObject } from 'ajv/dist/2020.js'
import type { FastifyRequest, FastifySchemaCompiler, FastifyServerOptions } from 'fastify'
import type { Fault } from '../../schemas/problem.ts'
import { describeFaults, joinFaults, makeAjv } from '../validation/schema-faults.ts'

const integerForm = /^-?[0-9]+$/

type Compilers = NonNullable<FastifyServerOptions['schemaController']>

/**
 * Makes the compilers of route schemas, so that Fastify's own are not loaded: one Ajv for all routes, and no
 * serializers, as handlers send text.
 */
export function makeCompilers(): Compilers {
  const ajv = makeAjv()
  const compile: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
    // Schemas of headers are documentation only: a malformed header is ignored.
    if (httpPart === 'headers') return () => true
    const validate = ajv.compile(schema)
    if (httpPart !== 'querystring') return validate
    const integers = Object.keys(schema.properties).filter(
      (name) => schema.properties[name].type === 'integer',
    )
    const validateQuery = (query: Record<string, unknown>) => {
      for (const name of integers) if (name in query) query[name] = readInteger(query[name])
      return validate(query)
    }
    return Object.defineProperty(validateQuery, 'errors', { get: () => validate.errors })
  }
  return {
    compilersFactory: {
      // Typed for the factories of Fastify's own package alone.
      buildValidator: () => compile as never,
      // Answers are serialized by hand, and have no schema there.
      buildSerializer: String as never,
    },
  }
}

/**
 * Reads an integer in decimal digits. `0x10`, `1e3`, ` 5`, `-0` and lists of values stay as they are, and are refused.
 */
function readInteger(value: unknown): unknown {
  if (typeof value !== 'string' || !integerForm.test(value)) return value
  return Object.is(Number(value), -0) ? value : Number(value)
}

/**
 * Finds every fault in the body and the query of a refused request. `found`: faults of the body's members found while
 * it was parsed.
 */
export function findFaults(request: FastifyRequest, body: unknown, found: Fault[] = []): Fault[] {
  const ofBody = joinFaults(findPartFaults(request, 'body', body), found)
  return [...ofBody, ...findPartFaults(request, 'querystring', request.query)]
}

function findPartFaults(request: FastifyRequest, part: string, value: unknown): Fault[] {
  const validate = request.getValidationFunction(part as 'body')
  return validate === undefined || validate(value)
    ? []
    : describeFaults(validate.errors as ErrorObject[], part)
}
