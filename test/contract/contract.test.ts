// The contract: the document in the repository, what the code generates, and what the service does are the same.
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import pino from 'pino'
import { test } from 'tap'
import { parse } from 'yaml'
import { examples } from '../../schemas/examples.ts'
import { components } from '../../schemas/index.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { sqlite } from '../support/engines.ts'
import { findErrors } from '../support/problem.ts'
import { request, spawnCli, startApp } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { compose, type Parts, send } from '../support/wire.ts'

const file = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: the document is walked, not known.
type Node = any
const document: Node = parse(file)

/** What a reference in the document leads to; anything else is what it is. */
function follow(node: Node): Node {
  const steps: string[] = node?.$ref?.split('/').slice(1) ?? []
  return steps.reduce((at, step) => at[step], steps.length > 0 ? document : node)
}

const { get, head, post } = document.paths['/plants']
const operations: Record<'GET' | 'HEAD' | 'POST', Node> = { GET: get, HEAD: head, POST: post }

/** Every object of a document with its JSON Pointer. */
function* walk(node: Node, pointer = ''): Generator<[pointer: string, node: Node]> {
  if (typeof node !== 'object' || node === null) return
  yield [pointer, node]
  for (const [name, child] of Object.entries(node))
    yield* walk(child, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
}

test('openapi.yaml is what the code generates', async (t) => {
  const { ended, output } = spawnCli(t, ['openapi'])
  t.match(await ended, { code: 0 })
  t.ok(output().stdout === file, 'npm run openapi writes it')
})

test('the service serves the same document as YAML and as JSON, without a token', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const headers = { authorization: '' }
  const yaml = await request(`${url}/openapi.yaml`, { headers })
  t.match(yaml.headers.get('content-type'), /^application\/yaml/)
  t.ok(yaml.text === file)
  const json = await request(`${url}/openapi.json`, { headers })
  t.match(json.headers.get('content-type'), /^application\/json/)
  t.same(json.json(), document)
  for (const path of ['openapi.yaml', 'openapi.json', 'openapi-3.0.json', 'docs', '']) {
    const head = await request(`${url}/${path}`, { method: 'HEAD', headers })
    t.equal(head.status, path === '' ? 302 : 200)
    t.equal(head.text, '')
  }
})

test('the document says where the service is', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH: '/store/v1' } })
  const served = (await request(`${url}/store/v1/openapi.json`)).json() as Node
  t.same(served.servers, [{ url: '/store/v1' }])
  const { InvalidList } = served.components.responses
  t.equal(
    InvalidList.content['application/problem+json'].examples.query.value.type,
    '/store/v1/problems/invalid-request',
  )
  t.match(served.components.headers.Link.example, /^<\/store\/v1\/plants\?/)
  const refused = (await request(`${url}/store/v1/plants?limit=x`)).json() as Node
  t.equal(refused.type, '/store/v1/problems/invalid-request')
  t.same(Object.keys(served.paths), ['/plants'])
  for (const path of ['/', '/store/v1', '/store/v1/']) {
    const answer = await request(`${url}${path}`)
    t.match([answer.status, answer.headers.get('location')], [302, '/store/v1/docs'])
  }
})

test('the document is valid OpenAPI 3.1', async (t) => {
  t.equal(document.openapi, '3.1.0')
  t.match(await new Validator().validate(structuredClone(document)), { valid: true })
})

test('for tools that stop at OpenAPI 3.0 there is a rendition of the same', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const older = (await request(`${url}/openapi-3.0.json`)).json() as Node
  t.equal(older.openapi, '3.0.3')
  t.match(await new Validator().validate(structuredClone(older)), { valid: true })
  t.same(Object.keys(older.paths['/plants']), Object.keys(document.paths['/plants']))
  t.same(older.components.responses, document.components.responses)
  const { examples, properties, ...newer } = document.components.schemas.NewPlant
  t.match(older.components.schemas.NewPlant, { ...newer, example: examples[0] })
  t.equal(older.components.schemas.NewPlant.properties.name.pattern, properties.name.pattern)
  for (const [pointer, node] of walk(older)) if (Array.isArray(node.examples)) t.fail(pointer)
  t.same(older.info.license, { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' })
})

test('the document explains itself', async (t) => {
  const { info, tags } = document
  t.match(info.description, '[guide](/docs/guide)')
  t.same(
    tags.map((tag: Node) => [tag.name, typeof tag.description]),
    [['plants', 'string']],
  )
})

test('operations and components have their names', async (t) => {
  t.equal(operations.POST.operationId, 'createPlant')
  t.equal(operations.GET.operationId, 'listPlants')
  t.same(Object.keys(document.paths), ['/plants'])
  t.same(Object.keys(document.paths['/plants']).sort(), ['get', 'head', 'post'])
  t.equal(operations.HEAD.operationId, 'headPlants')
  t.same(Object.keys(document.components.schemas).sort(), [
    'Fault',
    'FaultCode',
    'NewPlant',
    'Plant',
    'PlantList',
    'Problem',
  ])
})

test('the version of package.json is that of all the rest', (t) => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const { version } = JSON.parse(read('package.json'))
  const { packages, ...lockfile } = JSON.parse(read('package-lock.json'))
  t.same(
    [lockfile, packages[''], packages.client, JSON.parse(read('client/package.json')), document.info].map(
      (one) => one.version,
    ),
    Array(5).fill(version),
  )
  t.match(read('client/README.md'), `./plant-store-client-${version}.tgz`)
  t.end()
})

test('what is sent and answered has exactly the documented fields', async (t) => {
  const { NewPlant, Plant } = document.components.schemas
  t.same(Object.keys(NewPlant.properties).sort(), ['id', 'name', 'tag'])
  t.same([...NewPlant.required].sort(), ['name', 'tag'])
  t.same(Object.keys(Plant.properties).sort(), ['name', 'tag'])
  t.same([...Plant.required].sort(), ['name', 'tag'])
  t.same(
    operations.GET.parameters
      .map(follow)
      .map((parameter: Node) => [parameter.name, parameter.in, parameter.required]),
    [
      ['limit', 'query', false],
      ['after', 'query', false],
      ['If-Match', 'header', false],
      ['If-None-Match', 'header', false],
    ],
  )
  t.same(
    operations.POST.parameters.map((parameter: Node) => follow(parameter).name),
    ['If-Match', 'If-None-Match'],
  )
  for (const name of ['after', 'If-Match', 'If-None-Match'])
    t.notOk('example' in document.components.parameters[name], `tools would send an example of ${name}`)
})

test('every schema has a description, and what clients send and store is closed', async (t) => {
  for (const [pointer, schema] of walk(components)) {
    if (typeof schema.type !== 'string' || pointer.includes('/examples/')) continue
    t.ok(schema.description, pointer)
    // Clients must expect more of what explains a failure, and only of that. Generators make nothing of members of any
    // name, where these are allowed in so many words.
    const isOpen = ['Problem', 'Fault'].includes(schema.$id)
    if (schema.type === 'object') t.equal(schema.additionalProperties, isOpen ? undefined : false, pointer)
  }
})

test('every pattern matches in linear time', async (t) => {
  for (const [pointer, { pattern }] of walk(document)) {
    if (typeof pattern !== 'string') continue
    for (const character of ['a', ' ', '-'])
      t.notOk(new RegExp(pattern, 'u').test(`${character.repeat(1_000_000)}\n`), pointer)
  }
})

test('every component has examples, and they are valid', async (t) => {
  for (const { $id, examples } of components) {
    t.ok(Array.isArray(examples) && examples.length > 0, String($id))
    for (const example of examples as unknown[]) t.equal(findErrors($id as string, example), null)
  }
})

test('every example in the document is valid against its schema', async (t) => {
  const ajv = new Ajv2020({ strict: false, formats: { 'uri-reference': true, int64: true, int32: true } })
  ajv.addSchema(document, 'document')
  let count = 0
  for (const [pointer, node] of walk(document)) {
    const at = node.schema ? `${pointer}/schema` : pointer
    const named = Object.values<Node>(Array.isArray(node.examples) ? {} : (node.examples ?? {}))
    const all = [...(Array.isArray(node.examples) ? node.examples : []), node.example]
    for (const example of [...all, ...named.map(({ value }) => value)]) {
      if (example === undefined) continue
      const validate = ajv.compile({ $ref: `document#${encodeURI(at)}` })
      t.ok(validate(example), `${pointer}: ${JSON.stringify(example)}`)
      count++
    }
  }
  t.ok(count >= 60)
})

test('every named example has a summary', async (t) => {
  for (const [pointer, { examples }] of walk(document))
    for (const [name, { summary }] of Object.entries<Node>(Array.isArray(examples) ? {} : (examples ?? {})))
      t.match(summary, /^[A-Z]/, `${pointer}/${name}`)
})

test('example bodies can be sent twice', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const { examples } = operations.POST.requestBody.content['application/json']
  t.ok(Object.keys(examples).length >= 2)
  for (const { value } of [...Object.values<Node>(examples), ...Object.values<Node>(examples)])
    t.match(await request(`${url}/plants`, { body: value }), { status: 200 })
})

const everywhere = ['X-Content-Type-Options', 'X-Request-Id']
/** Headers that are not on every answer with the status. */
const sometimes = ['Accept-Encoding', 'Content-Encoding', 'Link', 'RateLimit', 'RateLimit-Policy']

/** Headers that come with a status, whatever the operation. */
const headersOf: Record<number, string[]> = {
  304: ['ETag', 'Cache-Control', 'Link', 'Vary'],
  415: ['Accept-Encoding'],
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}
/** Those of answers to requests whose token is valid, and of no other status. */
const rateHeaders = ['RateLimit-Policy', 'RateLimit']
const uncounted = [401, 408, 414, 417, 431]

test('every status is documented with its headers and its body', async (t) => {
  for (const [method, operation] of Object.entries(operations))
    for (const [status, reference] of Object.entries<Node>(operation.responses)) {
      const response = follow(reference)
      t.ok(response.description, `${method} ${status}`)
      const headers = Object.keys(response.headers ?? {})
      const ofRate = uncounted.includes(Number(status)) ? [] : rateHeaders
      const isList = status === '200' && method !== 'POST'
      const others = isList
        ? [...(headersOf[304] ?? []), 'Content-Encoding']
        : (headersOf[Number(status)] ?? [])
      const ofError = Number(status) >= 400 ? ['Cache-Control'] : []
      t.same(headers.sort(), [...others, ...ofError, ...ofRate, ...everywhere].sort(), `${method} ${status}`)
      const required = headers.filter((name) => follow(response.headers[name]).required)
      t.same(
        required,
        headers.filter((name) => !sometimes.includes(name)),
      )
      const media = Object.entries<Node>(response.content ?? {})
      if (status === '304' || method === 'HEAD') t.same(media, [])
      else if (status === '200')
        t.same(
          media.map(([type]) => type),
          ['application/json'],
        )
      else
        t.match(media, [['application/problem+json', { schema: { $ref: '#/components/schemas/Problem' } }]])
    }
})

type Failure = Error | undefined

/** Requests and the answer that the document shows for them: the name of the response, and of its example. */
const shown: [response: keyof typeof examples, example: string, parts: Parts, failure?: Failure][] = [
  ['PlantsListed', 'empty', {}],
  ['PlantAdded', 'plant', { body: '{"name":"Alder","tag":"Alnus"}' }],
  ['PlantAdded', '', { body: '{"name":"Black alder","tag":"Alnus glutinosa","id":7}' }],
  ['PlantsListed', 'plants', {}],
  ['InvalidAddition', 'body', { body: '{"name":"","tag":5,"colour":"red"}' }],
  ['InvalidList', 'query', { target: '/plants?limit=-1' }],
  ['Unauthorized', 'missing', { headers: { Authorization: undefined } }],
  ['Unauthorized', 'missing', { body: '{}', headers: { Authorization: undefined } }],
  ['Unauthorized', 'missing', { headers: { Authorization: 'Basic eDp5' } }],
  ['Unauthorized', 'invalid', { headers: { Authorization: 'Bearer x' } }],
  ['Forbidden', 'scope', { body: '{}', headers: { Authorization: 'reader' } }],
  ['Forbidden', '', { headers: { Authorization: 'writer' } }],
  ['IdConflict', 'conflict', { body: '{"name":"Alder","tag":"Alnus","id":7}' }],
  ['OtherList', 'list', { headers: { 'If-Match': '"other"' } }],
  ['ConditionalAddition', 'addition', { body: '{"name":"a","tag":"b"}', headers: { 'If-Match': '*' } }],
  ['ContentTooLarge', 'large', { body: ' '.repeat(20_000) }],
  ['UriTooLong', 'long', { target: `/plants?limit=${'1'.repeat(9000)}` }],
  ['UriTooLong', 'long', { target: `/plants?limit=${'1'.repeat(9000)}`, body: '{}' }],
  ['UnsupportedMediaType', 'type', { body: '{}', headers: { 'Content-Type': 'text/plain' } }],
  [
    'UnsupportedMediaType',
    'charset',
    { body: '{}', headers: { 'Content-Type': 'application/json; charset=latin1' } },
  ],
  ['UnsupportedMediaType', 'encoding', { body: '{}', headers: { 'Content-Encoding': 'gzip' } }],
  ['ExpectationFailed', 'expectation', { body: '{}', headers: { Expect: 'much' } }],
  ['ExpectationFailed', 'expectation', { headers: { Expect: 'much' } }],
  ['HeadersTooLarge', 'large', { headers: { 'X-Long': 'x'.repeat(20_000) } }],
  ['HeadersTooLarge', 'large', { body: '{}', headers: { 'X-Long': 'x'.repeat(20_000) } }],
  ['InternalError', 'fault', { body: '{"name":"e","tag":"f"}' }, new Error('broken')],
  ['InternalError', 'fault', {}, new Error('broken')],
  ...(['nothingAdded', 'outcomeUnknown', 'unread', 'overloaded'] as const).map(
    (example): (typeof shown)[number] => [
      'AdditionUnavailable',
      example,
      { body: '{"name":"e","tag":"f"}' },
      unavailable(example),
    ],
  ),
  ['ListUnavailable', 'unread', {}, unavailable('unread')],
  ['ListUnavailable', 'overloaded', {}, unavailable('overloaded')],
]

function unavailable(example: 'nothingAdded' | 'outcomeUnknown' | 'unread' | 'overloaded'): Error {
  const outcomes = { nothingAdded: 'nothing-added', outcomeUnknown: 'unknown' } as const
  return new StoreUnavailable(outcomes[example as 'nothingAdded'] ?? example, 'for the operator')
}

/** What needs a client or a service of its own: test/http/bad-requests.test.ts and test/access/rate-limits.test.ts have it. */
const elsewhere = {
  examples: ['RequestTimeout late', 'TooManyRequests rate', 'TooManyRequests failures'],
  statuses: ['408', '429'],
}

test('what the service answers is what the document shows', async (t) => {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database, { logger: pino({ level: 'silent' }) })
  let failure: Failure
  const log: typeof store.log = {
    ...store.log,
    append: (entries) => (failure ? Promise.reject(failure) : store.log.append(entries)),
    head: () => (failure ? Promise.reject(failure) : store.log.head()),
  }
  const { port } = await startApp(t, database, {
    store: { ...store, log },
    env: { RATE_LIMIT: '5000/s' },
  })
  const tokens = new Tokens(store.tokens)
  const known: Record<string, string> = {
    reader: `Bearer ${await tokens.create({ name: 'reader', scopes: ['plants:read'] })}`,
    writer: `Bearer ${await tokens.create({ name: 'writer', scopes: ['plants:write'] })}`,
  }
  const unseen = new Set(
    Object.entries(examples).flatMap(([response, all]) =>
      Object.keys(all).map((key) => `${response} ${key}`),
    ),
  )
  const seen: Record<string, Set<string>> = {
    GET: new Set(elsewhere.statuses),
    POST: new Set(elsewhere.statuses),
  }
  for (const example of elsewhere.examples) unseen.delete(example)
  for (const [name, example, { headers = {}, ...parts }, error] of shown) {
    const method = parts.body === undefined ? 'GET' : 'POST'
    const { Authorization: owner = '' } = headers
    failure = error
    const answer = await send(
      port,
      compose({ ...parts, headers: { ...headers, ...(known[owner] && { Authorization: known[owner] }) } }),
    )
    const title = `${method}: ${name} ${example}`
    const documented = document.components.responses[name]
    t.equal(operations[method].responses[answer.status]?.$ref, `#/components/responses/${name}`, title)
    seen[method]?.add(String(answer.status))
    const [[media, content] = []] = Object.entries<Node>(documented.content)
    t.equal(answer.headers.get('content-type'), media, title)
    if (example !== '') t.same(JSON.parse(answer.text), content.examples[example].value, title)
    unseen.delete(`${name} ${example}`)
    for (const header of Object.keys(documented.headers ?? {}))
      t.equal(
        answer.headers.has(header),
        !['Link', 'Content-Encoding'].includes(header) &&
          (header !== 'Accept-Encoding' || example === 'encoding'),
        `${header} of ${title}`,
      )
  }
  t.same([...unseen], [], 'every example was seen')
  failure = undefined
  const current = await send(port, compose({ target: '/plants?limit=1', headers: { 'If-None-Match': '*' } }))
  t.equal(current.status, 304)
  for (const header of Object.keys(document.components.responses.NotModified.headers))
    t.ok(current.headers.has(header), header)
  seen.GET?.add('304')
  for (const method of ['GET', 'POST'] as const)
    t.same(
      [...(seen[method] as Set<string>)].sort(),
      Object.keys(operations[method].responses),
      `all of ${method}`,
    )
  t.same(Object.keys(operations.HEAD.responses), Object.keys(operations.GET.responses))
})
