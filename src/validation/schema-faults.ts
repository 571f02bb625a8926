// Validation by the schemas: Ajv coerces nothing, drops nothing, and reports every fault.
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { components } from '../../schemas/index.ts'
import { patternWords } from '../../schemas/plant.ts'
import type { Fault } from '../../schemas/problem.ts'
import { count } from '../runtime/count.ts'
import { escapePointer } from './json.ts'

/** Makes an Ajv that knows the components. */
export function makeAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: true,
    // Tests check our schemas; checking them against the meta-schema took an eighth of the start.
    validateSchema: false,
    meta: false,
    formats: { 'uri-reference': true, int32: true, int64: true },
  })
  for (const schema of components) ajv.addSchema(schema)
  return ajv
}

/**
 * Makes the check of a value outside HTTP: returns every fault of a value that should match the component, together with
 * the faults found while it was parsed.
 */
export function makeBodyCheck(component: string): (value: unknown, found: Fault[]) => Fault[] {
  const validate = makeAjv().getSchema(component) as ValidateFunction
  return (value, found) =>
    joinFaults(validate(value) ? [] : describeFaults(validate.errors as ErrorObject[], 'body'), found)
}

/** Joins the faults of a body with those found while it was parsed, one per mistake. */
export function joinFaults(ofBody: Fault[], found: Fault[]): Fault[] {
  const news = found.filter((fault) => !ofBody.some((other) => implies(other, fault)))
  const known = ofBody.filter((fault) => !news.some((other) => implies(other, fault)))
  return [...news, ...known]
}

/** True when one mistake causes both: the value of an unknown or duplicate member is no second fault. */
function implies(fault: Fault, other: Fault): boolean {
  if (fault === other || fault.pointer !== other.pointer) return false
  return (
    fault.code === 'unknown' ||
    fault.code === other.code ||
    (fault.code === 'duplicate' && other.code !== 'unknown') ||
    (fault.code === 'type' && other.code === 'text')
  )
}

/** Turns Ajv's errors for a part of a request into faults, one per mistake. */
export function describeFaults(errors: ErrorObject[], part: string): Fault[] {
  const faults = new Map<string, Fault>()
  for (const error of errors) {
    const fault = { ...describe(error, part), ...locate(error, part) }
    // One fault per parameter is enough.
    const key = fault.parameter ?? `${fault.code} ${fault.pointer}`
    // An empty text has a fault of length already.
    const isKnown = part === 'body' && error.keyword === 'pattern' && error.data === ''
    if (!faults.has(key) && !isKnown) faults.set(key, fault)
  }
  return [...faults.values()]
}

/** Names the place of a fault. A query is flat: its only step is the parameter. */
function locate({ instancePath, params }: ErrorObject, part: string): Pick<Fault, 'pointer' | 'parameter'> {
  const name: string | undefined = params.missingProperty ?? params.additionalProperty
  if (part !== 'body') return { parameter: name ?? instancePath.slice(1) }
  return { pointer: instancePath + (name === undefined ? '' : `/${escapePointer(name)}`) }
}

function describe({ keyword, params, parentSchema, data }: ErrorObject, part: string): Described {
  const isBody = part === 'body'
  // Without a body the body itself is what is missing.
  if (keyword === 'required' || (isBody && data === undefined))
    return { code: 'required', detail: 'is required' }
  if (keyword === 'additionalProperties')
    return { code: 'unknown', detail: `is not an allowed ${isBody ? 'member' : 'parameter'}` }
  if (keyword === 'pattern')
    return isBody
      ? { code: 'text', detail: `must have ${patternWords[params.pattern]}` }
      : { code: 'format', detail: 'must have the form that the contract describes' }
  const side = keyword.startsWith('min') || data === Number.NEGATIVE_INFINITY ? 'least' : 'most'
  if (keyword.endsWith('Length'))
    return { code: 'length', detail: `must have at ${side} ${count(params.limit, 'character')}` }
  // A number that is too large for a double is infinite, and has the wrong type.
  const isInfinite = typeof data === 'number' && !Number.isFinite(data)
  if (keyword.endsWith('imum') || (params.type === 'integer' && isInfinite)) {
    const limit = side === 'least' ? parentSchema?.minimum : parentSchema?.maximum
    return { code: 'range', detail: `must be at ${side} ${limit}` }
  }
  if (isBody)
    return { code: 'type', detail: `must be ${/^[aeiou]/.test(params.type) ? 'an' : 'a'} ${params.type}` }
  return Array.isArray(data)
    ? { code: 'duplicate', detail: 'must be given once' }
    : { code: 'type', detail: 'must be decimal digits' }
}

type Described = Pick<Fault, 'code' | 'detail'>
