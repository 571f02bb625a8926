// The contract: openapi.yaml, what the code generates, and what the service does are the same.
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { makeExamples } from '../../schemas/examples.ts'
import { components } from '../../schemas/index.ts'
import { createToken } from '../../src/tokens/tokens.ts'
import { runCommand } from '../support/commands.ts'
import { resolve, walk } from '../support/contract.ts'
import { request, startApp } from '../support/service.ts'
import { openFailing, type StoreFault } from '../support/stores.ts'
import { compose, type Parts, send } from '../support/wire.ts'

const file = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: the document has no type.
type Node = any
const document: Node = parse(file)

const { get, post } = document.paths['/plants']
const operations: Record<'GET' | 'POST', Node> = { GET: get, POST: post }

test('openapi.yaml is byte-identical to what the app describes', async (t) => {
  const { stdout } = await runCommand(['openapi'])
  t.ok(stdout === file, 'npm run openapi writes it')
})

test('the service serves the same document as YAML and as JSON, without a token', async (t) => {
  const { url } = await startApp(t)
  const headers = { authorization: '' }
  const yaml = await request(`${url}/openapi.yaml`, { headers })
  t.match(yaml.headers.get('content-type'), /^application\/yaml/)
  t.ok(yaml.text === file)
  const json = await request(`${url}/openapi.json`, { headers })
  t.match(json.headers.get('content-type'), /^application\/json/)
  t.same(json.json(), document)
})

test('the document has the base path', async (t) => {
  const { url } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  const served = (await request(`${url}/store/v1/openapi.json`)).json() as Node
  t.same(served.servers, [{ url: '/store/v1' }])
  const { examples } = served.paths['/plants'].get.responses[400].content['application/problem+json']
  t.equal(examples.query.value.type, '/store/v1/problems/invalid-request')
  t.ok(served.components.schemas.ProblemType.enum.includes('/store/v1/problems/unread'))
  t.match(served.info.description, '[guide](/store/v1/docs/guide)')
  t.match(served.components.headers.Link.example, /^<\/store\/v1\/plants\?/)
  t.same(Object.keys(served.paths), ['/plants'])
  t.equal((await request(`${url}/store/v1`)).status, 200)
  t.equal((await request(`${url}/`)).status, 404)
})

test('the document is valid OpenAPI 3.1', async (t) => {
  t.equal(document.openapi, '3.1.0')
  t.match(await new Validator().validate(structuredClone(document)), { valid: true })
})

test('all files have the version of package.json', async (t) => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const { version } = JSON.parse(read('package.json'))
  const { packages, ...lockfile } = JSON.parse(read('package-lock.json'))
  const client = JSON.parse(read('client/package.json'))
  for (const one of [lockfile, packages[''], packages.client, client, document.info])
    t.equal(one.version, version)
  t.match(read('client/README.md'), `./plant-store-client-${version}.tgz`)
})

test('every schema has a description and examples, and those of plants are closed', async (t) => {
  for (const { $id, examples = [] } of components) t.ok((examples as unknown[]).length > 0, String($id))
  for (const [pointer, schema] of walk(components)) {
    if (typeof schema.type !== 'string' || pointer.includes('/examples/')) continue
    t.ok(schema.description, pointer)
    // Clients must tolerate new members only in errors.
    const isOpen = ['Problem', 'Fault'].includes(schema.$id)
    if (schema.type === 'object') t.equal(schema.additionalProperties, isOpen, pointer)
  }
})

test('every pattern matches in linear time', async (t) => {
  for (const [pointer, { pattern }] of walk(document)) {
    if (typeof pattern !== 'string') continue
    for (const character of ['a', ' ', '-'])
      t.notOk(new RegExp(pattern, 'u').test(`${character.repeat(1_000_000)}\n`), pointer)
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

/** Headers that only some responses with a status have. */
const optional = /^(Accept-Encoding|Content-Encoding|Link|RateLimit|RateLimit-Policy|X-Request-Id)$/
/** Headers of any HTTP server, which are not documented. */
const common = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding']

const another = { body: '{"name":"e","tag":"f"}' }

/** Requests, with the documented status and example of their responses. */
const shown: [status: number, example: string, parts: Parts, fault?: StoreFault][] = [
  [200, 'empty', {}],
  [200, 'plant', { body: '{"name":"Alder","tag":"Alnus"}' }],
  [200, '', { body: '{"name":"Black alder","tag":"Alnus glutinosa","id":7}' }],
  [200, 'plants', {}],
  [400, 'body', { body: '{"name":"","tag":5,"colour":"red"}' }],
  [400, 'query', { target: '/plants?limit=-1' }],
  [401, 'missing', { headers: { Authorization: undefined } }],
  [401, 'missing', { body: '{}', headers: { Authorization: undefined } }],
  [401, 'invalid', { headers: { Authorization: 'Bearer x' } }],
  [401, 'invalid', { body: '{}', headers: { Authorization: 'Bearer x' } }],
  [403, 'scope', { body: '{}', headers: { Authorization: 'reader' } }],
  [403, 'scope', { headers: { Authorization: 'writer' } }],
  [409, 'conflict', { body: '{"name":"Alder","tag":"Alnus","id":7}' }],
  [413, 'large', { body: ' '.repeat(20_000) }],
  [414, 'long', { target: `/plants?limit=${'1'.repeat(9000)}` }],
  [414, 'long', { target: `/plants?limit=${'1'.repeat(9000)}`, body: '{}' }],
  [415, 'type', { body: '{}', headers: { 'Content-Type': 'text/plain' } }],
  [415, 'charset', { body: '{}', headers: { 'Content-Type': 'application/json; charset=latin1' } }],
  [415, 'encoding', { body: '{}', headers: { 'Content-Encoding': 'gzip' } }],
  [431, 'large', { headers: { 'X-Long': 'x'.repeat(20_000) } }],
  [431, 'large', { body: '{}', headers: { 'X-Long': 'x'.repeat(20_000) } }],
  [500, 'fault', another, 'broken'],
  [500, 'fault', {}, 'broken'],
  [503, 'nothingAdded', another, 'nothing-added'],
  [503, 'outcomeUnknown', another, 'unknown'],
  [503, 'unread', another, 'unread'],
  [503, 'overloaded', another, 'overloaded'],
  [503, 'unread', {}, 'unread'],
  [503, 'overloaded', {}, 'overloaded'],
]

/** 408 is in test/http/time.test.ts, 429 is below. */
const elsewhere = ['408', '429']

/** Every example of the document: operation, status, name. */
const allExamples = Object.values(makeExamples('/')).flatMap(({ responses }, index) =>
  Object.entries(responses).flatMap(([status, examples]) =>
    Object.keys(examples).map((name) => `${['POST', 'GET'][index]} ${status} ${name}`),
  ),
)

test('each response of the service matches the document', async (t) => {
  const { store, faults } = await openFailing(t)
  const { port } = await startApp(t, '', { store, env: { RATE_LIMIT: '5000/s' } })
  const known: Record<string, string> = {
    reader: `Bearer ${await createToken(store.tokens, { name: 'reader', scopes: ['plants:read'] })}`,
    writer: `Bearer ${await createToken(store.tokens, { name: 'writer', scopes: ['plants:write'] })}`,
  }
  const seen = new Set<string>()
  for (const [status, example, { headers = {}, ...parts }, fault] of shown) {
    const method = parts.body === undefined ? 'GET' : 'POST'
    const { Authorization: owner = '' } = headers
    if (fault !== undefined) faults.push(fault)
    const own = known[owner] && { Authorization: known[owner] }
    const answer = await send(port, compose({ ...parts, headers: { ...headers, ...own } }))
    const title = `${method} ${status} ${example}`
    t.equal(answer.status, status, title)
    const documented = operations[method].responses[status]
    const [content] = Object.values<Node>(documented.content)
    if (example !== '') t.same(JSON.parse(answer.text), content.examples[example].value, title)
    if (status >= 400) t.equal(content.schema.$ref, '#/components/schemas/Problem', title)
    seen.add(title)
    const absent = ['Link', 'Content-Encoding', ...(example === 'encoding' ? [] : ['Accept-Encoding'])]
    assertHeaders(t, answer.headers, documented, absent)
  }
  const unseen = allExamples.filter((one) => !seen.has(one) && !elsewhere.includes(String(one.split(' ')[1])))
  t.same(unseen, [], 'every example was seen')
  const current = await send(port, compose({ target: '/plants?limit=1', headers: { 'If-None-Match': '*' } }))
  t.match(current, { status: 304, text: '' })
  assertHeaders(t, current.headers, operations.GET.responses[304], [])
})

/** Asserts that a response has all documented headers except `absent`, and no undocumented ones. */
function assertHeaders(t: Test, headers: Headers, documented: Node, absent: string[]): void {
  const names = Object.keys(documented.headers)
  const expected = names.filter((name) => !absent.includes(name)).map((name) => name.toLowerCase())
  const sent = [...headers.keys()].filter((name) => !common.includes(name))
  t.same(sent.toSorted(), expected.toSorted(), documented.description)
  const required = names.filter((name) => resolve(documented.headers[name].$ref.slice(1)).node.required)
  const always = names.filter((name) => !optional.test(name))
  t.same(required, always)
}

test('a request over the limit gets the documented 429 on both operations', async (t) => {
  const { url } = await startApp(t, undefined, { env: { RATE_LIMIT: '1/h' } })
  for (const body of [undefined, { name: 'Alder', tag: '' }]) {
    await request(`${url}/plants`, { body })
    const answer = await request(`${url}/plants`, { body })
    t.match(answer, { status: 429, text: '/problems/rate-limited' })
    assertHeaders(t, answer.headers, operations[body ? 'POST' : 'GET'].responses[429], [])
  }
})
