// The contract: the document in the repository, what the code generates, and what the service does are the same.
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import pino from 'pino'
import { test } from 'tap'
import { parse } from 'yaml'
import { components } from '../schemas/index.ts'
import { ProblemError } from '../src/http/problem-error.ts'
import { openStore } from '../src/store/open.ts'
import { Tokens } from '../src/tokens/tokens.ts'
import { sqlite } from './support/engines.ts'
import { findErrors } from './support/problem.ts'
import { request, spawnCli, startApp } from './support/service.ts'
import { compose, type Parts, send } from './support/wire.ts'

const file = readFileSync(new URL('../openapi.yaml', import.meta.url), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: the document is walked, not known.
type Node = any
const document: Node = parse(file)
const operations = { GET: document.paths['/plants'].get, POST: document.paths['/plants'].post }

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
  for (const path of ['openapi.yaml', 'openapi.json', 'docs', '']) {
    const head = await request(`${url}/${path}`, { method: 'HEAD', headers })
    t.equal(head.status, path === '' ? 302 : 200)
    t.equal(head.text, '')
  }
})

test('the document says where the service is', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH: '/store/v1' } })
  const served = (await request(`${url}/store/v1/openapi.json`)).json() as Node
  t.same(served.servers, [{ url: '/store/v1' }])
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

test('operations and components have their names', async (t) => {
  t.equal(operations.POST.operationId, 'createPlant')
  t.equal(operations.GET.operationId, 'listPlants')
  t.same(Object.keys(document.paths), ['/plants'])
  t.same(Object.keys(document.paths['/plants']).sort(), ['get', 'post'])
  t.same(Object.keys(document.components.schemas).sort(), [
    'Fault',
    'NewPlant',
    'Plant',
    'PlantList',
    'Problem',
  ])
  t.equal(document.info.version, JSON.parse(readFileSync('package.json', 'utf8')).version)
})

test('what is sent and answered has exactly the documented fields', async (t) => {
  const { NewPlant, Plant } = document.components.schemas
  t.same(Object.keys(NewPlant.properties).sort(), ['id', 'name', 'tag'])
  t.same([...NewPlant.required].sort(), ['name', 'tag'])
  t.same(Object.keys(Plant.properties).sort(), ['name', 'tag'])
  t.same([...Plant.required].sort(), ['name', 'tag'])
  t.same(
    operations.GET.parameters.map((parameter: Node) => [parameter.name, parameter.in, parameter.required]),
    [
      ['limit', 'query', false],
      ['after', 'query', false],
      ['If-Match', 'header', false],
      ['If-None-Match', 'header', false],
    ],
  )
})

test('every schema has a description, and every object is closed', async (t) => {
  for (const [pointer, schema] of walk(components)) {
    if (typeof schema.type !== 'string' || pointer.includes('/examples/')) continue
    t.ok(schema.description, pointer)
    if (schema.type === 'object') t.equal(schema.additionalProperties, false, pointer)
  }
})

test('every component has examples, and they are valid', async (t) => {
  for (const { $id, examples } of components) {
    t.ok(Array.isArray(examples) && examples.length > 0, String($id))
    for (const example of examples as unknown[]) t.equal(findErrors($id as string, example), null)
  }
})

test('every example in the document is valid against its schema', async (t) => {
  const ajv = new Ajv2020({ strict: false, formats: { 'uri-reference': true } })
  ajv.addSchema(document, 'document')
  let count = 0
  for (const [pointer, node] of walk(document)) {
    const at = node.schema ? `${pointer}/schema` : pointer
    for (const example of [...(Array.isArray(node.examples) ? node.examples : []), node.example]) {
      if (example === undefined) continue
      const validate = ajv.compile({ $ref: `document#${encodeURI(at)}` })
      t.ok(validate(example), `${pointer}: ${JSON.stringify(example)}`)
      count++
    }
  }
  t.ok(count >= 40)
})

/** Headers that come with a status, whatever the operation. */
const headersOf: Record<number, string[]> = {
  304: ['ETag', 'Cache-Control', 'Link'],
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  405: ['Allow'],
  503: ['Retry-After'],
}

test('every status is documented with its headers and its body', async (t) => {
  for (const [method, operation] of Object.entries(operations))
    for (const [status, response] of Object.entries<Node>(operation.responses)) {
      t.ok(response.description, `${method} ${status}`)
      const headers = Object.keys(response.headers ?? {})
      if (status === '200') t.same(headers, method === 'GET' ? ['ETag', 'Link', 'Cache-Control'] : [])
      else t.same(headers.sort(), (headersOf[Number(status)] ?? []).sort(), `${method} ${status}`)
      const media = Object.entries<Node>(response.content ?? {})
      if (status === '304') t.same(media, [])
      else if (status === '200')
        t.same(
          media.map(([type]) => type),
          ['application/json'],
        )
      else t.same(media, [['application/problem+json', { schema: { $ref: '#/components/schemas/Problem' } }]])
    }
})

test('what the service answers is documented', async (t) => {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database, { logger: pino({ level: 'silent' }) })
  let failure: Error | undefined
  const log: typeof store.log = {
    ...store.log,
    append: (entries) => (failure ? Promise.reject(failure) : store.log.append(entries)),
    head: () => (failure ? Promise.reject(failure) : store.log.head()),
  }
  const { port } = await startApp(t, database, { store: { ...store, log } })
  const tokens = new Tokens(store.sql)
  const reader = `Bearer ${await tokens.create({ name: 'reader', scopes: ['plants:read'] })}`
  const writer = `Bearer ${await tokens.create({ name: 'writer', scopes: ['plants:write'] })}`
  const body = '{"name":"a","tag":"b","id":1}'
  const unavailable = new ProblemError('unavailable', 'Later.', { headers: { 'Retry-After': '1' } })
  const exchanges: [status: number, parts: Parts, failure?: Error][] = [
    [200, { body }],
    [200, { body: '{"name":"c","tag":"d"}' }],
    [200, {}],
    [200, { target: '/plants?limit=1' }],
    [304, { target: '/plants?limit=1', headers: { 'If-None-Match': '*' } }],
    [400, { body: '{}' }],
    [400, { target: '/plants?limit=x' }],
    [401, { body, headers: { Authorization: undefined } }],
    [401, { headers: { Authorization: 'Bearer x' } }],
    [403, { body, headers: { Authorization: reader } }],
    [403, { headers: { Authorization: writer } }],
    [409, { body: '{"name":"a","tag":"c","id":1}' }],
    [412, { body, headers: { 'If-Match': '*' } }],
    [412, { headers: { 'If-Match': '"other"' } }],
    [413, { body: ' '.repeat(20_000) }],
    [414, { target: `/plants?limit=${'1'.repeat(9000)}` }],
    [414, { target: `/plants?limit=${'1'.repeat(9000)}`, body }],
    [415, { body, headers: { 'Content-Type': 'text/plain' } }],
    [417, { body, headers: { Expect: 'much' } }],
    [417, { headers: { Expect: 'much' } }],
    [431, { headers: { 'X-Long': 'x'.repeat(20_000) } }],
    [431, { body, headers: { 'X-Long': 'x'.repeat(20_000) } }],
    [500, { body: '{"name":"e","tag":"f"}' }, new Error('broken')],
    [500, {}, new Error('broken')],
    [503, { body: '{"name":"e","tag":"f"}' }, unavailable],
    [503, {}, unavailable],
  ]
  const seen = { GET: new Set(['405', '408']), POST: new Set(['405', '408']) }
  for (const [status, parts, error] of exchanges) {
    const method = parts.body === undefined ? 'GET' : 'POST'
    failure = error
    const answer = await send(port, compose(parts))
    t.equal(answer.status, status, `${method} ${JSON.stringify(parts).slice(0, 80)}`)
    seen[method].add(String(answer.status))
    const documented = operations[method].responses[answer.status]
    const isCut = parts.target === '/plants?limit=1'
    for (const name of Object.keys(documented.headers ?? {}))
      t.equal(answer.headers.has(name), name !== 'Link' || isCut, `${name} of ${method} ${status}`)
    const [[media, content] = []] = Object.entries<Node>(documented.content ?? {})
    t.equal(answer.headers.get('content-type')?.replace('; charset=utf-8', '') ?? undefined, media)
    if (media) t.equal(findErrors(content.schema.$ref.split('/').at(-1), JSON.parse(answer.text)), null)
  }
  for (const method of ['GET', 'POST'] as const)
    t.same([...seen[method]].sort(), Object.keys(operations[method].responses), `all of ${method} were seen`)
})
