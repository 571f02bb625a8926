// What counts as a breaking change of the document: a table of changes, each made to one small document.
import { test } from 'tap'
import { parse } from 'yaml'
import { findBreaking, isMajor } from '../../contract/breaking.ts'
import type { Node } from '../../contract/schema-gaps.ts'

const base = `
security: [{ bearer: [] }]
components:
  parameters:
    Limit: { in: query, name: limit, schema: { type: integer, minimum: 0, maximum: 9 } }
  responses:
    Busy: { headers: { Retry-After: { required: true, schema: { type: integer } } }, content: { problem: { schema: { $ref: '#/components/schemas/Problem' } } } }
  schemas:
    New:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: { type: string, maxLength: 9, pattern: '^[a-z]*$' }
        kind: { enum: [tree, herb] }
        size: { anyOf: [{ type: integer }, { type: 'null' }] }
    Plant:
      type: object
      additionalProperties: false
      required: [name]
      properties: { name: { type: string, allOf: [{ pattern: '^[^<]*$' }, { pattern: '^[^\\x80-\\x9F]*$' }] }, kind: { enum: [tree, herb] } }
    Problem: { type: object, required: [title], properties: { title: { type: string }, detail: { type: string } } }
paths:
  /plants:
    parameters: []
    get:
      parameters: [{ $ref: '#/components/parameters/Limit' }]
      responses:
        '200':
          headers: { ETag: { schema: { type: string } } }
          content: { json: { schema: { type: array, items: { $ref: '#/components/schemas/Plant' } } } }
        '503': { $ref: '#/components/responses/Busy' }
    post:
      requestBody: { required: true, content: { json: { schema: { $ref: '#/components/schemas/New' } } } }
      responses:
        '200': { content: { json: { schema: { $ref: '#/components/schemas/Plant' } } } }
        '201': { description: '' }
        '405': { description: '' }
        '503': { $ref: '#/components/responses/Busy' }
  /open:
    get: { security: [{}], responses: {} }
`

type Parts = { document: Node; get: Node; post: Node; New: Node; Plant: Node; Problem: Node; busy: Node }
type Row = [change: string, edit: (parts: Parts) => void, expected?: string[]]

const breaking: Row[] = [
  [
    'a path goes',
    ({ document }) => (document.paths = {}),
    ['GET /plants: removed', 'POST /plants: removed', 'GET /open: removed'],
  ],
  ['an operation goes', ({ document }) => delete document.paths['/plants'].get, ['GET /plants: removed']],
  ['a success goes', ({ post }) => delete post.responses['201'], ['POST /plants 201: removed']],
  ['a media type goes', ({ get }) => (get.responses['200'].content = {}), ['GET /plants 200: json removed']],
  ['all content goes', ({ get }) => delete get.responses['200'].content, ['GET /plants 200: json removed']],
  ['a header goes', ({ get }) => (get.responses['200'].headers = {}), ['GET /plants 200 ETag: removed']],
  ['all headers go', ({ get }) => delete get.responses['200'].headers, ['GET /plants 200 ETag: removed']],
  [
    'a header becomes optional',
    ({ busy }) => (busy.headers['Retry-After'].required = false),
    ['GET', 'POST'].map((method) => `${method} /plants 503 Retry-After: no longer on every answer`),
  ],
  [
    'a header changes its type',
    ({ get }) => (get.responses['200'].headers.ETag.schema.type = 'integer'),
    ['answer GET /plants 200 ETag: type'],
  ],
  ['a parameter goes', ({ get }) => delete get.parameters, ['GET /plants query limit: removed']],
  [
    'a parameter is asked for',
    ({ get }) => get.parameters.push({ in: 'query', name: 'at', required: true }),
    ['GET /plants query at: required'],
  ],
  [
    'a parameter becomes required',
    ({ document }) => (document.components.parameters.Limit.required = true),
    ['GET /plants query limit: required'],
  ],
  [
    'a bound is narrowed from above',
    ({ document }) => (document.components.parameters.Limit.schema.maximum = 8),
    ['request GET /plants query limit: maximum'],
  ],
  [
    'a bound is narrowed from below',
    ({ document }) => (document.components.parameters.Limit.schema.minimum = 1),
    ['request GET /plants query limit: minimum'],
  ],
  ['a bound is new', ({ New }) => (New.properties.name.minLength = 1), ['request New/name: minLength']],
  [
    'a body is asked for',
    ({ get }) => (get.requestBody = { required: true }),
    ['GET /plants body: required'],
  ],
  ['a body goes', ({ post }) => delete post.requestBody, ['POST /plants body: json removed']],
  [
    'a body in another type',
    ({ post }) => (post.requestBody.content = { xml: {} }),
    ['POST /plants body: json removed'],
  ],
  ['a member is asked for', ({ New }) => New.required.push('kind'), ['request New: required kind']],
  ['a member goes', ({ New }) => delete New.properties.kind, ['request New: member kind']],
  ['a value goes', ({ New }) => New.properties.kind.enum.pop(), ['request New/kind: values']],
  ['one value is left', ({ New }) => (New.properties.kind = { const: 'tree' }), ['request New/kind: values']],
  ['values are fixed', ({ New }) => (New.properties.name.enum = ['a']), ['request New/name: values']],
  ['an alternative goes', ({ New }) => New.properties.size.anyOf.pop(), ['request New/size: type']],
  [
    'a pattern is narrowed',
    ({ New }) => (New.properties.name.pattern = '^[a-y]*$'),
    ['request New/name: pattern, for instance "z"'],
  ],
  [
    'an empty text is refused',
    ({ New }) => (New.properties.name.pattern = '^[a-z]+$'),
    ['request New/name: pattern, for instance ""'],
  ],
  ['a format is asked for', ({ New }) => (New.properties.name.format = 'uri'), ['request New/name: format']],
  ['a type changes', ({ New }) => (New.properties.name.type = 'integer'), ['request New/name: type']],
  ['a condition is new', ({ New }) => (New.not = { required: ['kind'] }), ['request New: not']],
  [
    'a returned member is no longer certain',
    ({ Plant }) => delete Plant.required,
    ['answer Plant: required name'],
  ],
  [
    'a returned member goes',
    ({ Plant }) => delete Plant.properties.kind,
    ['answer Plant: member kind removed'],
  ],
  [
    'all returned members go',
    ({ Problem }) => delete Problem.properties,
    ['answer Problem: member title removed', 'answer Problem: member detail removed'],
  ],
  [
    'a returned value is new',
    ({ Plant }) => Plant.properties.kind.enum.push('fern'),
    ['answer Plant/kind: values'],
  ],
  [
    'a returned text may hold another character',
    ({ Plant }) => Plant.properties.name.allOf.pop(),
    ['answer Plant/name: pattern, for instance "U+0080"'],
  ],
  [
    'a returned text may have any form',
    ({ Plant }) => delete Plant.properties.name.allOf,
    ['answer Plant/name: pattern, for instance "<"'],
  ],
  [
    'a header has no schema',
    ({ get }) => delete get.responses['200'].headers.ETag.schema,
    ['answer GET /plants 200 ETag: type'],
  ],
  [
    'a token is asked for at last',
    ({ document }) => {
      document.paths['/open'].get.security = document.security
    },
    ['GET /open: security'],
  ],
  [
    'a closed answer is opened',
    ({ Plant }) => delete Plant.additionalProperties,
    ['answer Plant: open to other members'],
  ],
  [
    'a closed answer has a new member',
    ({ Plant }) => (Plant.properties.age = { type: 'integer' }),
    ['answer Plant: member age'],
  ],
  [
    'a token is asked for',
    ({ document }) => (document.security[0].other = []),
    ['GET /plants: security', 'POST /plants: security'],
  ],
  [
    'a scope is asked for',
    ({ post }) => (post.security = [{ bearer: ['write'] }]),
    ['POST /plants: security'],
  ],
]

const harmless: Row[] = [
  ['nothing', () => {}],
  ['an operation is new', ({ document }) => (document.paths['/trees'] = { get: { responses: {} } })],
  ['an error goes', ({ post }) => delete post.responses['405']],
  ['a response is new', ({ get }) => (get.responses['429'] = { $ref: '#/components/responses/Busy' })],
  ['a header is new', ({ busy }) => (busy.headers.Allow = { schema: { type: 'string' } })],
  ['an optional parameter is new', ({ get }) => get.parameters.push({ in: 'query', name: 'after' })],
  ['an optional member of a request is new', ({ New }) => (New.properties.age = { type: 'integer' })],
  ['a request is opened', ({ New }) => delete New.additionalProperties],
  ['a request member is no longer required', ({ New }) => (New.required = [])],
  ['a request may have no member', ({ New }) => delete New.required],
  ['a bound is widened', ({ New }) => (New.properties.name.maxLength = 10)],
  ['a pattern is spelt in another way', ({ New }) => (New.properties.name.pattern = '^[a-jk-z]*$')],
  ['one pattern in two parts', ({ New }) => (New.properties.name.allOf = [{ pattern: '^[^\\x00]*$' }])],
  ['a type is widened', ({ New }) => (New.properties.size.anyOf[0].type = 'number')],
  ['a format of numbers', ({ New }) => (New.properties.size.anyOf[0].format = 'int64')],
  ['alternatives by another word', ({ New }) => (New.properties.size = { oneOf: New.properties.size.anyOf })],
  ['an open answer has a new member', ({ Problem }) => (Problem.properties.code = { type: 'string' })],
  ['an answer is more certain', ({ Problem }) => Problem.required.push('detail')],
  ['a returned value no longer comes', ({ Plant }) => (Plant.properties.kind = { const: 'tree' })],
  ['a body may be left out', ({ post }) => (post.requestBody.required = false)],
  ['a way in is new', ({ document }) => document.security.push({ other: [] })],
  ['no token is asked for', ({ get }) => (get.security = [])],
  ['nothing is asked for on the whole', ({ document }) => delete document.security],
]

function compare(edit: Row[1]): string[] {
  const document = parse(base)
  const { get, post } = document.paths['/plants']
  const { schemas, responses } = document.components
  edit({ document, get, post, ...schemas, busy: responses.Busy })
  return findBreaking(parse(base), document)
}

test('a change that would break a client is found and named', async (t) => {
  for (const [change, edit, expected] of breaking) t.same(compare(edit), expected, change)
})

test('a change that no client notices is not reported', async (t) => {
  for (const [change, edit] of harmless) t.same(compare(edit), [], change)
})

test('a breaking change asks for a higher first number of the version', async (t) => {
  t.notOk(isMajor('1.0.0', '1.9.0'))
  t.notOk(isMajor('9.9.9', '9.10.0'))
  t.ok(isMajor('9.9.9', '10.0.0'))
})

test('a document without authentication must not begin to require it', async (t) => {
  const paths = { '/plants': { get: { responses: {} } } }
  t.same(findBreaking({ paths }, { paths, security: [{ bearer: [] }] }), ['GET /plants: security'])
  t.same(findBreaking({ paths }, { paths }), [])
})
