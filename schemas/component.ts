// Named schemas: routes, types and the OpenAPI document all refer to the same component.
import { type Static, type TSchema, Type } from '@sinclair/typebox'

/** Names a schema: its key in `components.schemas`. */
export function component<T extends TSchema>(name: string, schema: T): T {
  return { ...schema, $id: name }
}

/** A typed reference to a component: `{ $ref }` on the wire, the component's type in TypeScript. */
export function ref<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${schema.$id}#` })
}
