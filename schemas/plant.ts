// The schemas of plants, and of the query parameters of a list.
import { type Static, type StringOptions, Type } from '@sinclair/typebox'
import { component, ref } from './component.ts'

// Patterns with the same meaning in ECMAScript (with and without the `u` and `v` flags), RE2 and Rust: only ASCII, one
// pattern per string, no look-ahead, no `\u`; Python's `$` also allows a final line feed. Each matches in linear time.
// Half of these engines cannot represent lone surrogates, so the service's validator refuses them by a custom keyword.
const control = '\\x00-\\x1F\\x7F-\\x9F'
const plain = `^[^${control}]*$`
/** Spaces and no-break spaces, then the first other character: disjoint classes, so that nothing backtracks. */
const visible = `^[\\x20\\xA0]*[^\\x00-\\x20\\x7F-\\xA0][^${control}]*$`

/** The keyword that refuses lone surrogates in a string. The contract omits it. */
export const wellFormed = 'x-well-formed'

const noControls = 'must not contain control characters (U+0000 to U+001F, U+007F to U+009F)'
/** Fault details, by pattern. */
export const patternDetails: Readonly<Record<string, string>> = {
  [plain]: noControls,
  [visible]: `${noControls}, and must contain a character other than spaces and no-break spaces`,
}

/** The schema of a string in a plant: no control characters, no lone surrogates. */
const text = (options: StringOptions) => Type.String({ pattern: plain, ...options, [wellFormed]: true })

const name = text({
  description:
    'The name of the plant. It must not contain control characters, and must contain a character other than spaces and ' +
    'no-break spaces. It is stored byte for byte. Its length is counted in code points.',
  minLength: 1,
  maxLength: 255,
  pattern: visible,
  examples: ['Black alder', '山椒'],
})

const tag = text({
  description:
    'A label of your choice, such as the species. It must not contain control characters, and may be empty. It is ' +
    'stored byte for byte. Its length is counted in code points.',
  maxLength: 255,
  examples: ['Alnus glutinosa', ''],
})

/** The stored and returned fields of a plant, in the order of serialization; optional ones come last. */
const returned = { name, tag }

/** Lists the names of these fields in a sentence: `name or tag`. */
export function listFields(word: 'and' | 'or', quote = ''): string {
  const fields = Object.keys(returned).map((field) => quote + field + quote)
  return joinWords(fields, word)
}

/** Joins words for a sentence: `a, b and c`. */
export function joinWords(words: readonly string[], last: 'and' | 'or'): string {
  return words.join(', ').replace(/, (?=[^,]*$)/, ` ${last} `)
}

const id = Type.Integer({
  description:
    `Your own number for the plant. It makes retries safe: a request with the same id, ${listFields('and')} adds nothing, ` +
    `and one with the same id but a different ${listFields('or')} is rejected. It is never returned.`,
  format: 'int64',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  examples: [7],
})

/** The body of the add operation. */
export const NewPlant = component(
  'NewPlant',
  Type.Object(
    { ...returned, id: Type.Optional(id) },
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
  Type.Object(returned, {
    description: 'A plant in the store.',
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

/** The query of the list operation. Integers are sent as decimal digits only. */
export const ListQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        description:
          'The maximum number of plants to return, in decimal digits. By default, all plants are returned.',
        format: 'int64',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        examples: [100],
      }),
    ),
    after: Type.Optional(
      Type.String({
        description: 'A cursor from the `Link` header of an earlier page. Any other value is rejected.',
        maxLength: 64,
        pattern: '^[0-9a-z]{1,11}-[0-9A-Za-z_\\-]{11}$',
      }),
    ),
  },
  { description: 'Selects a part of the list.', additionalProperties: false },
)
export type ListQuery = Static<typeof ListQuery>

/** Conditions of a request. They have no examples, because Swagger UI would send them. */
export const Conditions = Type.Object(
  {
    'If-None-Match': Type.Optional(
      Type.String({
        description:
          'Entity tags of cached lists. The response is 304 if one of them is current (RFC 9110, 13.1.2).',
      }),
    ),
  },
  { description: 'Conditions of a request.' },
)

/** The query of the add operation, which allows no parameters. */
export const NoQuery = Type.Object({}, { description: 'No query parameters.', additionalProperties: false })
