// The schemas of plants, and of the query of a list.
import { type Static, Type } from '@sinclair/typebox'
import { component, ref } from './component.ts'

// Patterns that ECMAScript with and without the `u` and `v` flags, RE2 and Rust read alike: only ASCII, a single
// pattern per text, no look-ahead, no `\u`; Python's `$` also allows a final line feed. Each matches in linear time.
// Lone surrogates, which half of these engines cannot represent, are refused when JSON is parsed.
const control = '\\x00-\\x1F\\x7F-\\x9F'
const plain = `^[^${control}]*$`
/**
 * Spaces and no-break spaces, then the first other character. The classes are disjoint, so that backtracking never
 * helps.
 */
const visible = `^[\\x20\\xA0]*[^\\x00-\\x20\\x7F-\\xA0][^${control}]*$`

const noControls = 'no control characters (U+0000 to U+001F, U+007F to U+009F)'
/** Requirements of the patterns, in words for clients. */
export const patternWords: Readonly<Record<string, string>> = {
  [plain]: noControls,
  [visible]: `${noControls}, and at least one character that is neither a space nor a no-break space`,
}

const name = Type.String({
  description:
    'The name of the plant: no control characters, and at least one character that is neither a space nor a no-break ' +
    'space. Stored byte for byte; lengths count code points.',
  minLength: 1,
  maxLength: 255,
  pattern: visible,
  examples: ['Black alder', '山椒'],
})

const tag = Type.String({
  description: 'A label of your choice, for instance the species: no control characters. May be empty.',
  maxLength: 255,
  pattern: plain,
  examples: ['Alnus glutinosa', ''],
})

/** The fields of a plant that are stored and shown, in the order of their serialization; optional ones come last. */
const shown = { name, tag }

/** The names of these fields in words: `name or tag`. */
export function listShown(word: 'and' | 'or', quote = ''): string {
  return joinWords(
    Object.keys(shown).map((field) => quote + field + quote),
    word,
  )
}

/** Joins words for a sentence: `a, b and c`. There must be at least two. */
export function joinWords(words: readonly string[], last: 'and' | 'or'): string {
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

const id = Type.Integer({
  description:
    `Your own number for the plant. It makes a retry safe: the same id with the same ${listShown('and')} adds nothing, ` +
    `with another ${listShown('or')} it is refused. It is never returned.`,
  format: 'int64',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  examples: [7],
})

/** The body of the add operation. */
export const NewPlant = component(
  'NewPlant',
  Type.Object(
    { ...shown, id: Type.Optional(id) },
    {
      description: 'A plant to add.',
      additionalProperties: false,
      examples: [
        { name: 'Alder', tag: 'Alnus' },
        { name: 'Black alder', tag: 'Alnus glutinosa', id: 7 },
      ],
    },
  ),
)
export type NewPlant = Static<typeof NewPlant>

/** A plant in responses. */
export const Plant = component(
  'Plant',
  Type.Object(shown, {
    description: 'A plant of the store.',
    additionalProperties: false,
    examples: [{ name: 'Black alder', tag: 'Alnus glutinosa' }],
  }),
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

/** The query of the list operation. Integers are sent as decimal digits only. */
export const ListQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        description: 'The maximum number of plants to return: decimal digits only. Without it, all of them.',
        format: 'int64',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        examples: [100],
      }),
    ),
    after: Type.Optional(
      Type.String({
        description:
          'Where a page starts. Take it from the `Link` header of the previous page; a made-up one is refused.',
        maxLength: 64,
        pattern: '^[0-9a-z]{1,11}-[0-9A-Za-z_\\-]{11}$',
      }),
    ),
  },
  { description: 'Which part of the list to return.', additionalProperties: false },
)
export type ListQuery = Static<typeof ListQuery>

/** Conditions of a request. They have no examples, because Swagger UI would send these. */
export const Conditions = Type.Object(
  {
    'If-None-Match': Type.Optional(
      Type.String({
        description:
          'Entity tags of lists that the client has; 304 if the current one is among them (RFC 9110, 13.1.2).',
      }),
    ),
  },
  { description: 'Conditions of a request.' },
)

/** The query of the add operation, which allows no parameters. */
export const NoQuery = Type.Object({}, { description: 'No query parameters.', additionalProperties: false })
