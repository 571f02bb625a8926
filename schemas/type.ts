// The builders of TypeBox that the contract is written with, and its types. TypeBox itself is 200 files, which would take as
// much CPU as a start of Node; test/contract.test.ts shows that these make the same.
import type { Type as TypeBox } from '@sinclair/typebox'

type Schema = Record<string, unknown>
type Builders = Pick<typeof TypeBox, 'Array' | 'Integer' | 'Object' | 'Optional' | 'String' | 'Unsafe'>

/** Marks what may be left out; JSON does not show it. */
const optional = Symbol('optional')

export const Type = {
  Array: (items: Schema, options: Schema) => ({ ...options, type: 'array', items }),
  Integer: (options: Schema) => ({ ...options, type: 'integer' }),
  Object(properties: Record<string, Schema & { [optional]?: true }>, options: Schema) {
    const required = Object.keys(properties).filter((name) => !properties[name]?.[optional])
    return { ...options, type: 'object', ...(required.length > 0 && { required }), properties }
  },
  Optional: (schema: Schema) => ({ ...schema, [optional]: true }),
  String: (options: Schema) => ({ ...options, type: 'string' }),
  Unsafe: (schema: Schema) => ({ ...schema }),
} as unknown as Builders
