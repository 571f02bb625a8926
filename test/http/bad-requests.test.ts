// Bad requests get their status and problem details, and change nothing.
import tap, { before, type Test, test } from 'tap'
import type { Problem } from '../../schemas/problem-details.ts'
import { assertProblem } from '../support/problem.ts'
import { type Running, request, startApp, token } from '../support/service.ts'
import { compose, exchange, type Parts, send } from '../support/wire.ts'

const good = { name: 'Alder', tag: 'Alnus', id: 7 }
const text = (length: number, character = 'x') => character.repeat(length)

/** Bodies and their faults: the code, and the place as a JSON Pointer. patterns.test.ts has more names. */
const bodies: [body: unknown, ...faults: string[]][] = [
  ['', 'format '],
  ['{', 'format '],
  ['\ufeff{"name":"a","tag":"b"}', 'format '],
  ['{"name":"a","tag":"b","\\ud800":"\\udc00"}', 'unknown /\ufffd'],
  ['{"name":"\\ud800","x":"\\ud800"}', 'text /name', 'required /tag', 'unknown /x'],
  ['{"name":" \\udfff","tag":"\\n\\ud800"}', 'text /name', 'text /tag', 'text /tag'],
  [`{"name":"\\ud800${'x'.repeat(255)}","tag":""}`, 'length /name', 'text /name'],
  [{ name: ' '.repeat(256), tag: 'b' }, 'length /name', 'text /name'],
  [Buffer.from('{"name":"\xff","tag":"b"}', 'latin1'), 'format '],
  [Buffer.from('{"name":"\xed\xa0\x80","tag":"b"}', 'latin1'), 'format '],
  ['null', 'type '],
  [[], 'type '],
  [{}, 'required /name', 'required /tag'],
  [{ name: null, tag: null, id: null }, 'type /name', 'type /tag', 'type /id'],
  [{ name: 'a', tag: text(256) }, 'length /tag'],
  [{ name: 'a', tag: 'b', id: '7' }, 'type /id'],
  [{ name: 'a', tag: 'b', id: -1 }, 'range /id'],
  [{ name: 'a', tag: 'b', id: 1.5 }, 'type /id'],
  ['{"name":"a","tag":"b","id":9007199254740992}', 'range /id'],
  ['{"name":"a","tag":"b","id":1e400}', 'range /id'],
  [{ name: 'a', tag: 'b', ID: 7 }, 'unknown /ID'],
  [{ name: 'a', tag: 'b', 'x/y~z': 7 }, 'unknown /x~1y~0z'],
  ['{"name":"a","tag":"b","__proto__":{}}', 'unknown /__proto__'],
  [{ name: 1, tag: 2, id: 'x', colour: 'red' }, 'unknown /colour', 'type /name', 'type /tag', 'type /id'],
  [`{"name":"a","tag":"b","x":${'['.repeat(8000)}1e1${']'.repeat(8000)}}`, 'unknown /x'],
  [{ name: 'a\u0085', tag: '\u009f' }, 'text /name', 'text /tag'],
]

/** Queries of the list operation and their faults: the code, and the parameter. */
const queries: [query: string, ...faults: string[]][] = [
  ['limit=', 'type limit'],
  ['limit=-1', 'range limit'],
  ['limit=-0', 'type limit'],
  ['limit=1e3', 'type limit'],
  ['limit=0x10', 'type limit'],
  ['limit=%2B5', 'type limit'],
  ['limit=%205', 'type limit'],
  ['limit=%D9%A5', 'type limit'],
  ['limit=1&limit=1', 'format limit'],
  ['limit=9007199254740992', 'range limit'],
  [`limit=${text(400, '9')}`, 'range limit'],
  ['limt=5', 'unknown limt'],
  ['limit[]=5', 'unknown limit[]'],
  ['toString=1', 'unknown toString'],
  ['after=', 'format after'],
  ['after=1-AAAAAAAAAAA', 'format after'],
  ['after=zzzzzzzzzzz-AAAAAAAAAAA', 'format after'],
  ['after=1-AAAAAAAAAAA&after=1-AAAAAAAAAAA', 'format after'],
  [`after=${text(65)}`, 'length after'],
  ['after=1-aaaaaaaaaa%0A', 'format after'],
  ['limit=x&offset=1&after=1&after=2', 'unknown offset', 'type limit', 'format after'],
]

const open = { Authorization: undefined }
const large: Parts = {
  body: `5000\r\n${text(0x5000, ' ')}\r\n0\r\n\r\n`,
  headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
}
const typed = (type: string | undefined): Parts => ({ body: '{}', headers: { 'Content-Type': type } })

/** Other requests and their status. */
const others: [title: string, status: number, parts: Parts][] = [
  ['two tokens', 401, { headers: { Authorization: `Bearer ${token}, Bearer ${token}` } }],
  ['a token in the query', 401, { target: `/plants?access_token=${token}`, headers: open }],
  ['an unknown path', 404, { target: '/plant' }],
  ['a trailing slash', 404, { target: '/plants/' }],
  ['another letter case', 404, { target: '/Plants' }],
  ['no token on an unknown path', 404, { target: '/x', headers: open }],
  ['an escaped path that leaves the docs', 404, { target: '/docs/static/%2e%2e/package.json' }],
  ['an unknown file of the docs', 404, { target: '/docs/static/nothing.js' }],
  ['a path that is very long', 404, { target: `/${text(5000)}` }],
  ['PUT', 405, { method: 'PUT', body: JSON.stringify(good) }],
  ['PROPFIND', 405, { method: 'PROPFIND' }],
  ['DELETE of an absolute URL', 405, { method: 'DELETE', target: 'http://plants.test/plants' }],
  ['POST to the docs', 405, { method: 'POST', target: '/docs' }],
  ['a body with a large Content-Length', 413, { body: '{}', headers: { 'Content-Length': '1000000000000' } }],
  ['a chunked body that becomes too large', 413, large],
  ['no media type', 415, typed(undefined)],
  ['a media type that starts like JSON', 415, typed('application/jsonl')],
  ['a charset that starts like UTF-8', 415, typed('application/json;charset=utf-80')],
  ['another charset after UTF-8', 415, typed('application/json;charset=utf-8;charset="latin1"')],
  ['the encoding identity', 415, { body: JSON.stringify(good), headers: { 'Content-Encoding': 'identity' } }],
]

const auth = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
const post = (headers: string, body = '') =>
  `POST /plants HTTP/1.1\r\n${auth}Content-Type: application/json\r\n${headers}\r\n\r\n${body}`
const plant = '{"name":"a","tag":""}'

/** Bytes that are not an HTTP request. */
const garbage: [title: string, status: number, bytes: string][] = [
  ['a TLS handshake', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['an unknown method', 400, `PLANT /plants HTTP/1.1\r\n${auth}\r\n`],
  ['a method of RTSP', 405, `DESCRIBE /plants RTSP/1.0\r\n${auth}\r\n`],
  ['a tunnel', 400, `CONNECT a:1 HTTP/1.1\r\n${auth}\r\n`],
  ['line ends without a carriage return', 400, `GET /plants HTTP/1.1\n${auth.replaceAll('\r', '')}\n`],
  ['two lengths', 400, post('Content-Length: 2\r\nContent-Length: 3', '{}')],
  ['a length and chunks', 400, post('Content-Length: 2\r\nTransfer-Encoding: chunked', '{}')],
  ['a transfer coding without chunks', 400, post('Transfer-Encoding: gzip')],
  ['a malformed chunk', 400, post('Transfer-Encoding: chunked', 'xyz\r\n')],
  [
    'chunks in HTTP/1.0',
    400,
    post('Connection: keep-alive\r\nTransfer-Encoding: chunked', '0\r\n\r\n').replace('1.1', '1.0'),
  ],
  ['gzip at an undecodable path', 400, post('Transfer-Encoding: gzip, chunked').replace('plants', '%')],
  ['a malformed host', 400, 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'],
  ['no host, before a plant', 400, `GET /plants HTTP/1.1\r\n\r\n${post('Content-Length: 21', plant)}`],
  ['an extra byte after a plant', 400, post('Content-Length: 21', `${plant}x`)],
]

/** The store has one plant, and no test adds another. */
let service: Running
before(async () => {
  service = await startApp(tap)
  await request(`${service.url}/plants`, { body: good })
})

/** Sends a request and asserts that the response is a problem with this status. */
async function refuse(t: Test, status: number, parts: Parts) {
  const answer = await send(service.port, compose(parts))
  return { ...assertProblem(t, answer, status), headers: answer.headers }
}

const faults = ({ errors = [] }: Pick<Problem, 'errors'>) =>
  errors.map(({ code, pointer, parameter }) => `${code} ${pointer ?? parameter}`).sort()

test('a bad body gets 400 and a list of its faults', async (t) => {
  for (const [body, ...expected] of bodies) {
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const title = `${bytes}`.replace(/[^ -~]/g, '.').slice(0, 100)
    t.same(faults(await refuse(t, 400, { body: bytes })), expected.sort(), title)
  }
})

test('a bad query gets 400 and a list of its faults', async (t) => {
  for (const [query, ...expected] of queries)
    t.same(faults(await refuse(t, 400, { target: `/plants?${query}` })), expected.sort(), query)
  const both = await refuse(t, 400, { target: '/plants?x=1', body: '{"name":"a"}' })
  t.same(faults(both), ['required /tag', 'unknown x'], 'faults of the query and the body')
  const many = await refuse(t, 400, { body: JSON.stringify({ ...[...text(19)] }) })
  t.match(many, { detail: 'The request has 21 faults.', errors: { length: 20 } })
})

test('400 lists the faults in the head of a request', async (t) => {
  const heads: [parts: Parts, fault: object][] = [
    [{ headers: { Host: undefined } }, { code: 'required', parameter: 'Host' }],
    [{ headers: { host: 'other.test' } }, { code: 'format', parameter: 'Host' }],
    [{ method: 'POST' }, { code: 'required', pointer: '' }],
    [{ target: '/%ff' }, { code: 'format', detail: 'The path is not a valid URL path.', pointer: '' }],
  ]
  for (const [parts, fault] of heads) {
    const { errors } = await refuse(t, 400, parts)
    t.match(errors, [fault])
    t.equal(errors?.length, 1)
  }
})

test('a bad body delays no later request, and a large one is refused while it is still being sent', async (t) => {
  for (const [status, bad] of [
    [400, { body: '{' }],
    [413, large],
  ] as const)
    t.match(await exchange(service.port, Buffer.concat([compose(bad), compose()]), 2), [
      { status },
      { status: 200 },
    ])
  for (let n = 0; n < 10; n++)
    t.equal((await request(`${service.url}/plants`, { body: { name: 'a', tag: text(5e6) } })).status, 413)
})

test('every other bad request gets its own status', async (t) => {
  for (const [title, status, parts] of others) {
    t.comment(title)
    const { headers, ...problem } = await refuse(t, status, parts)
    if (status === 413) t.equal(problem.title, 'Content Too Large')
    if (status === 405 && /plants$/.test(String(parts.target ?? '/plants')))
      t.equal(headers.get('allow'), 'GET, HEAD, POST')
  }
})

test('bytes that are not HTTP get 400, and the connection is closed', async (t) => {
  const { app, port } = service
  const { keepAliveTimeout } = app.server
  // A kept-alive connection would also be closed, but much later.
  app.server.keepAliveTimeout = 1
  for (const [title, status, bytes] of garbage) {
    const answers = await exchange(port, Buffer.from(bytes, 'latin1'), Number.POSITIVE_INFINITY)
    t.equal(answers.length, 1, title)
    if (answers[0]) assertProblem(t, answers[0], status)
    t.equal(answers[0]?.headers.get('connection'), 'close', title)
  }
  app.server.keepAliveTimeout = keepAliveTimeout
})

test('ignores an upgrade, and closes the connection after its response', async (t) => {
  const upgrade = compose({ target: '/plants?limit=0', headers: { Connection: 'Upgrade', Upgrade: 'h2c' } })
  const answers = await exchange(service.port, `${upgrade}${post('Content-Length: 21', plant)}`, 2)
  t.equal(answers.length, 1)
  t.match(answers, [{ status: 200, text: '[]' }])
  t.equal(answers[0]?.headers.get('connection'), 'close')
})

test('accepts any valid Host, even an empty one, and HTTP/1.0 without Host', async (t) => {
  for (const host of ['', '[::1]:3000', 'my_plants.test:80'])
    t.equal((await send(service.port, compose({ headers: { Host: host } }))).status, 200, host)
  // A client of HTTP/1.0 understands no interim response.
  const old = compose({ body: JSON.stringify(good), headers: { Host: undefined, Expect: '100-continue' } })
  t.match(await send(service.port, String(old).replace('HTTP/1.1', 'HTTP/1.0')), { status: 200 })
})

/** The largest accepted sizes; for a head, the smallest that is refused. */
const [maxUrlBytes, maxHeadBytes, maxBodyBytes] = [8 * 1024, 16 * 1024, 16 * 1024]

/** A valid target of this length. */
const makeTarget = (length: number) => '/plants?limit='.padEnd(length - 1, '0').concat('5')

/** A request with this many bytes in its target and its header names and values: Node counts only these. */
function makeHead(bytes: number, target = '/plants'): Parts {
  const counted = String(compose({ target })).replace(/ HTTP\/1\.1|GET |: |\r\n/g, '').length
  return { target, headers: { 'X-Long': 'x'.repeat(bytes - counted - 'X-Long'.length) } }
}

const [longest, tooLong] = [makeTarget(maxUrlBytes), makeTarget(maxUrlBytes + 1)]

/** Requests of the largest accepted size, and larger ones. */
const sizes: [title: string, status: number, parts: Parts][] = [
  ['the longest target', 200, { target: longest }],
  ['one byte more', 414, { target: tooLong }],
  ['the largest head', 200, makeHead(maxHeadBytes - 1)],
  ['one byte more', 431, makeHead(maxHeadBytes)],
  ['the longest target in a head that is too large', 431, makeHead(maxHeadBytes, longest)],
  ['the longest target in a head that is far too large', 431, makeHead(3 * maxHeadBytes, longest)],
  ['a target that is too long in the largest head', 414, makeHead(maxHeadBytes - 1, tooLong)],
  ['the largest body', 200, { body: JSON.stringify(good).padEnd(maxBodyBytes) }],
  ['one byte more', 413, { body: JSON.stringify(good).padEnd(maxBodyBytes + 1) }],
]

test('a request of the largest size is accepted, and one byte more is refused', async (t) => {
  for (const [title, status, parts] of sizes) {
    const answer = await send(service.port, compose(parts))
    t.equal(answer.status, status, title)
    if (status !== 200) assertProblem(t, answer, status)
    t.ok(Date.parse(String(answer.headers.get('date'))) <= Date.now(), `${title} has a date`)
  }
})

test('after all these requests the store is unchanged, and the service still responds', async (t) => {
  const { text } = await request(`${service.url}/plants`)
  t.equal(text, JSON.stringify([{ name: good.name, tag: good.tag }]))
})
