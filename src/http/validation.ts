// Validation by the schemas alone: Ajv coerces nothing, drops nothing, and reports every fault.
import type { TSchema } from '@sinclair/typebox'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { FastifySchemaCompiler } from 'fastify'
import { components } from '../../schemas/index.ts'
import type { Fault } from '../../schemas/problem.ts'
import { escapePointer } from './json.ts'

const digits = /^[0-9]+$/

/** Compiles the validator of one part of a request. Its errors are Ajv's, with `verbose`. */
export function makeValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: true,
    formats: { 'uri-reference': true },
  })
  ajv.addVocabulary(['example', 'x-pattern'])
  for (const schema of components) ajv.addSchema(schema)
  return ({ schema, httpPart }) => {
    // Their schemas are documentation: a header that is not understood is disregarded.
    if (httpPart === 'headers') return () => true
    const validate = ajv.compile(schema)
    if (httpPart !== 'querystring') return validate
    const integers = Object.keys(schema.properties).filter(
      (name) => schema.properties[name].type === 'integer',
    )
    const validateQuery = (query: Record<string, unknown>) => {
      for (const name of integers) if (name in query) query[name] = readInteger(query[name])
      const valid = validate(query)
      validateQuery.errors = validate.errors ?? null
      return valid
    }
    validateQuery.errors = null as ErrorObject[] | null
    return validateQuery
  }
}

/** An integer is decimal digits on the wire: `0x10`, `1e3`, ` 5` and two values stay what they are, and are refused. */
function readInteger(value: unknown): unknown {
  return typeof value === 'string' && digits.test(value) ? Number(value) : value
}

/** What the errors of a part of a request say to the client. */
export function describeFaults(errors: ErrorObject[], httpPart: string): Fault[] {
  return errors.map((error) => {
    const detail = describe(error)
    const name: string | undefined = error.params.missingProperty ?? error.params.additionalProperty
    // A query is flat: its only step is the parameter.
    if (httpPart !== 'body') return { detail, parameter: name ?? error.instancePath.slice(1) }
    return { detail, pointer: error.instancePath + (name === undefined ? '' : `/${escapePointer(name)}`) }
  })
}

function describe({ keyword, message, parentSchema }: ErrorObject): string {
  if (keyword === 'required') return 'is required'
  if (keyword === 'additionalProperties') return 'is not known'
  if (keyword === 'pattern') return `must have ${parentSchema?.['x-pattern']}`
  return String(message)
}
