// What a plant looks like on its way in and out, and what a list can be asked for.
import { type Static, Type } from '@sinclair/typebox'
import { component, ref } from './component.ts'

// `x-pattern` says a pattern in words: it is what a client reads when a text does not match.
const name = Type.String({
  description: 'What the plant is called. Kept to the byte; lengths count code points.',
  minLength: 1,
  maxLength: 255,
  pattern: '^(?=\\s*\\S)[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$',
  'x-pattern': 'at least one character that is not white space, no control characters, no lone surrogates',
  examples: ['Black alder', '山椒'],
})

const tag = Type.String({
  description: 'A label of your choice, for instance the species. May be empty.',
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$',
  'x-pattern': 'no control characters, no lone surrogates',
  examples: ['Alnus glutinosa', ''],
})

const id = Type.Integer({
  description:
    'Your own number for the plant. It makes a retry safe: the same id with the same name and tag adds nothing, ' +
    'with another name or tag it is refused. It is never returned.',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  examples: [7],
})

/** The body of the add operation. */
export const NewPlant = component(
  'NewPlant',
  Type.Object(
    { name, tag, id: Type.Optional(id) },
    {
      description: 'A plant to add.',
      additionalProperties: false,
      examples: [
        { name: 'Black alder', tag: 'Alnus glutinosa', id: 7 },
        { name: 'Alder', tag: 'Alnus' },
      ],
    },
  ),
)
export type NewPlant = Static<typeof NewPlant>

/** A plant as every response shows it. */
export const Plant = component(
  'Plant',
  Type.Object(
    { name, tag },
    {
      description: 'A plant of the store.',
      additionalProperties: false,
      examples: [{ name: 'Black alder', tag: 'Alnus glutinosa' }],
    },
  ),
)
export type Plant = Static<typeof Plant>

export const PlantList = component(
  'PlantList',
  Type.Array(ref(Plant), {
    description: 'Plants in the order in which they were added.',
    examples: [[{ name: 'Alder', tag: 'Alnus' }], []],
  }),
)
export type PlantList = Static<typeof PlantList>

/** The query of the list operation. On the wire an integer is decimal digits and nothing else. */
export const ListQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        description: 'The maximum number of plants to return: decimal digits only. Without it, all of them.',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        examples: [100],
      }),
    ),
    after: Type.Optional(
      Type.String({
        description:
          'Where a page starts. Take it from the `Link` header of the page before; do not make it up.',
        maxLength: 64,
      }),
    ),
  },
  { description: 'Which part of the list to return.', additionalProperties: false },
)
export type ListQuery = Static<typeof ListQuery>

/** What a list request may carry beside its query. Without examples: the docs page would send them along. */
export const ListHeaders = Type.Object(
  {
    'If-Match': Type.Optional(
      Type.String({
        description:
          'Entity tags of lists, as `ETag` gave them; 412 when none of them is current (RFC 9110, 13.1.1).',
      }),
    ),
    'If-None-Match': Type.Optional(
      Type.String({
        description:
          'Entity tags of lists that are at hand; 304 when one of them is current (RFC 9110, 13.1.2).',
      }),
    ),
  },
  { description: 'Headers of a list request.' },
)

/** The query of the add operation: there is none. */
export const NoQuery = Type.Object({}, { description: 'No query parameters.', additionalProperties: false })
