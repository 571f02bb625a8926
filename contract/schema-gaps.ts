// Is everything that one schema allows allowed by another as well? What is not is a gap.

// biome-ignore lint/suspicious/noExplicitAny: documents are walked, not known.
export type Node = any

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']
const opaque = ['not', 'if', 'then', 'else', 'multipleOf', 'uniqueItems', 'contains', 'patternProperties']

/** The node that a local `$ref` points to, or the node itself. */
export function resolve(document: Node, node: Node): Node {
  if (typeof node?.$ref !== 'string') return node
  const steps = node.$ref.slice(2).split('/')
  return resolve(
    document,
    steps.reduce((at: Node, step: string) => at[step], document),
  )
}

/** A schema and the document to resolve its references in; of a promise, each member has to come back. */
export type Side = { document: Node; schema: Node; isPromise?: boolean }

/**
 * The gaps between two schemas: one line for each kind of value that `from` allows and `to` refuses. References to
 * the same component are named by it, so that a component that many places use is one line.
 */
export function findGaps(from: Side, to: Side, where: string): string[] {
  const name = from.schema?.$ref?.split('/').at(-1)
  const at = name && from.schema.$ref === to.schema?.$ref ? name : where
  const narrow = flatten(to)
  return flatten(from).flatMap((wide) => {
    const gaps = narrow.map((one) => findPlainGaps({ ...from, schema: wide }, { ...to, schema: one }, at))
    return gaps.find((found) => found.length === 0) ?? (gaps[0] as string[])
  })
}

/** A schema as its alternatives (`anyOf`, `oneOf`), each with its `allOf` merged into it. */
function flatten({ document, schema }: Side): Node[] {
  const { allOf = [], anyOf, oneOf, ...rest } = resolve(document, schema) ?? {}
  const own = { ...rest, patterns: rest.pattern === undefined ? [] : [rest.pattern] }
  const parts = allOf.flatMap((part: Node) => flatten({ document, schema: part }))
  const merged = parts.reduce(merge, own)
  const alternatives = anyOf ?? oneOf
  if (!alternatives) return [merged]
  return alternatives.flatMap((one: Node) =>
    flatten({ document, schema: one }).map((part) => merge(merged, part)),
  )
}

function merge(one: Node, other: Node): Node {
  return {
    ...one,
    ...other,
    patterns: [...one.patterns, ...other.patterns],
    required: [...(one.required ?? []), ...(other.required ?? [])],
    properties: { ...one.properties, ...other.properties },
  }
}

function findPlainGaps(from: Side, to: Side, where: string): string[] {
  const [wide, narrow] = [from.schema, to.schema]
  const gaps: string[] = []
  const add = (holds: boolean, what: string) => !holds && gaps.push(`${where}: ${what}`)
  add(
    typesOf(wide).every((type) => isOneOf(type, typesOf(narrow))),
    'type',
  )
  const [values, allowed] = [valuesOf(wide), valuesOf(narrow)]
  if (allowed) add(values?.every((value) => allowed.includes(value)) ?? false, 'values')
  for (const key of lowerBounds) add((wide[key] ?? -Infinity) >= (narrow[key] ?? -Infinity), key)
  for (const key of upperBounds) add((wide[key] ?? Infinity) <= (narrow[key] ?? Infinity), key)
  for (const key of opaque) add(narrow[key] === undefined || isSame(narrow[key], wide[key]), key)
  add(isHarmless(narrow.format) || narrow.format === wide.format, 'format')
  const refused = findRefused(wide.patterns, narrow.patterns)
  add(refused === undefined, `pattern, for instance ${spell(refused ?? '')}`)
  for (const name of narrow.required ?? []) add(wide.required?.includes(name) ?? false, `required ${name}`)
  if (narrow.additionalProperties === false) add(wide.additionalProperties === false, 'open to other members')
  return [...gaps, ...findInnerGaps(from, to, where)]
}

function findInnerGaps(from: Side, to: Side, where: string): string[] {
  const inner = (wide: Node, narrow: Node, at: string) =>
    findGaps({ ...from, schema: wide }, { ...to, schema: narrow }, at)
  const gaps = to.schema.items ? inner(from.schema.items, to.schema.items, `${where}/items`) : []
  for (const [name, schema] of Object.entries(from.schema.properties ?? {})) {
    const other = to.schema.properties?.[name]
    if (other) gaps.push(...inner(schema, other, `${where}/${name}`))
    else if (to.schema.additionalProperties === false) gaps.push(`${where}: member ${name}`)
  }
  if (to.isPromise)
    for (const name of Object.keys(to.schema.properties ?? {}))
      if (!from.schema.properties?.[name]) gaps.push(`${where}: member ${name} removed`)
  return gaps
}

const everyType = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
const typesOf = ({ type }: Node): string[] => (type === undefined ? everyType : [type].flat())
const isOneOf = (type: string, types: string[]) =>
  types.includes(type) || (type === 'integer' && types.includes('number'))
const valuesOf = (schema: Node): unknown[] | undefined =>
  schema.const === undefined ? schema.enum : [schema.const]
const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/** Formats that say how a number is kept; its bounds say which numbers there are. */
const isHarmless = (format: unknown) =>
  [undefined, 'int32', 'int64', 'float', 'double'].includes(format as string)

// Whether one pattern allows all that another does cannot be decided in general, so both are asked about every
// character of the Basic Multilingual Plane and some beyond it. Surrogates are left out: no text that is sent has one.
const characters = Array.from({ length: 0x10000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .concat(0x1f33f, 0xe0001, 0x10ffff)
  .map((code) => String.fromCodePoint(code))
const probes = ['', ...characters.flatMap((one) => [one, `a${one}b`])]

function findRefused(wide: string[], narrow: string[]): string | undefined {
  const further = narrow.filter((pattern) => !wide.includes(pattern))
  if (further.length === 0) return undefined
  return probes.find((text) => !matches(further, text) && matches(wide, text))
}

const matches = (patterns: string[], text: string) => patterns.every((one) => expression(one).test(text))
const spell = (text: string) => JSON.stringify(text).replace(/[^ -~]/gu, (one) => `U+${hex(one)}`)
const hex = (one: string) => one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')

const expressions = new Map<string, RegExp>()
function expression(pattern: string): RegExp {
  const known = expressions.get(pattern) ?? new RegExp(pattern, 'u')
  expressions.set(pattern, known)
  return known
}
