// The faults of a value that does not match a schema: one per mistake, with its location.
import { Ajv, type ErrorObject, type Options } from 'ajv'
import formats from 'ajv-formats'
import { NewPlant, patternDetails, wellFormed } from '../../schemas/plant.ts'
import type { Fault } from '../../schemas/problem-details.ts'
import { maxFaults } from '../../schemas/problems.ts'

/** Options of Ajv, for requests and imports: no coercion, no removal of members, and all faults. */
export const ajvOptions = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  allErrors: true,
  verbose: true,
  // A test validates the schemas; validating them at each start would lengthen the start by a twentieth.
  validateSchema: false,
  keywords: [
    { keyword: wellFormed, type: 'string', validate: (_: true, text: string) => text.isWellFormed() },
  ],
} satisfies Options

type Part = 'body' | 'querystring'

/** Returns a function that describes up to `maxFaults` faults of a plant to add; undefined if it is valid. */
export function makePlantCheck(): (value: unknown) => string | undefined {
  // Fastify validates with the same formats.
  const validate = formats.default(new Ajv(ajvOptions)).compile(NewPlant)
  return (value) => {
    if (validate(value)) return undefined
    const faults = describeFaults(validate.errors ?? [], 'body').slice(0, maxFaults)
    return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
  }
}

/** Converts Ajv's errors for a part of a request into faults, one per mistake. */
export function describeFaults(errors: readonly ErrorObject[], part: Part): Fault[] {
  const faults = new Map<string, Fault>()
  for (const error of errors) {
    // An empty string has only a length fault.
    if (error.keyword === 'pattern' && error.data === '' && error.parentSchema?.minLength) continue
    const fault = { ...explainError(error, part), ...locate(error, part) }
    // A parameter has only one fault. A string may contain both a disallowed character and a lone surrogate.
    const key = fault.parameter ?? `${fault.code} ${fault.pointer} ${error.keyword === wellFormed}`
    if (!faults.has(key)) faults.set(key, fault)
  }
  return [...faults.values()]
}

/** Returns the location of an error: a JSON Pointer into a body (RFC 6901, section 3), or the name of a parameter. */
function locate({ instancePath, params }: ErrorObject, part: Part): Pick<Fault, 'pointer' | 'parameter'> {
  const name: string | undefined = params.missingProperty ?? params.additionalProperty
  if (part !== 'body') return { parameter: name ?? instancePath.slice(1) }
  if (name === undefined) return { pointer: instancePath }
  return { pointer: `${instancePath}/${name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')}` }
}

function explainError(error: ErrorObject, part: Part): Pick<Fault, 'code' | 'detail'> {
  const { keyword, params, parentSchema, data, message = '' } = error
  const isBody = part === 'body'
  if (keyword === 'required' || (isBody && data === undefined))
    return { code: 'required', detail: 'is required' }
  if (keyword === 'additionalProperties')
    return { code: 'unknown', detail: `is not a known ${isBody ? 'member' : 'parameter'}` }
  if (keyword === wellFormed) return { code: 'text', detail: 'must not contain lone surrogates' }
  if (keyword === 'pattern')
    return isBody
      ? { code: 'text', detail: patternDetails[params.pattern] ?? message }
      : { code: 'format', detail: 'does not have the documented format' }
  const isMinimum = keyword.startsWith('min') || data === Number.NEGATIVE_INFINITY
  const side = isMinimum ? 'least' : 'most'
  if (keyword.endsWith('Length')) {
    const characters = params.limit === 1 ? 'character' : 'characters'
    return { code: 'length', detail: `must have at ${side} ${params.limit} ${characters}` }
  }
  // A number that is too large for a double is parsed as Infinity, which is not an integer.
  const isInfinite = typeof data === 'number' && !Number.isFinite(data)
  if (/^m(in|ax)imum$/.test(keyword) || (params.type === 'integer' && isInfinite)) {
    const limit = isMinimum ? parentSchema?.minimum : parentSchema?.maximum
    return { code: 'range', detail: `must be at ${side} ${limit}` }
  }
  if (isBody && keyword === 'type')
    return { code: 'type', detail: `must be ${/^[aeiou]/.test(params.type) ? 'an' : 'a'} ${params.type}` }
  // A keyword that no field has yet: use Ajv's message. An integer with a wrong type also has a wrong format.
  if (isBody) return { code: /^int/.test(params.format) ? 'type' : 'format', detail: message }
  return Array.isArray(data)
    ? { code: 'format', detail: 'must be given only once' }
    : { code: 'type', detail: 'must be a whole number in decimal digits' }
}
