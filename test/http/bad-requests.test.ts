// Everything that is no good request gets its status and problem details, and changes nothing.
import { once } from 'node:events'
import { connect } from 'node:net'
import tap, { before, type Test, test } from 'tap'
import type { Problem } from '../../schemas/problem.ts'
import { sqlite } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { type Running, request, startApp, token } from '../support/service.ts'
import { openStore } from '../support/stores.ts'
import { compose, exchange, type Parts, readAnswers, send } from '../support/wire.ts'

const good = { name: 'Alder', tag: 'Alnus', id: 7 }
const text = (length: number, character = 'x') => character.repeat(length)

/** Bodies and their faults: the code, and the place as a JSON Pointer. */
const bodies: [body: unknown, ...faults: string[]][] = [
  ['', 'format '],
  ['{', 'format '],
  ['{"name":"a","tag":"b",}', 'format '],
  ['{"name":"a",/**/"tag":"b"}', 'format '],
  ['\ufeff{"name":"a","tag":"b"}', 'format '],
  ['{"name":"a","tag":"b","id":07}', 'format '],
  ['{"name":"a","tag":"b","\\ud800":"\\udc00"}', 'unknown /\ufffd'],
  ['{"name":"\\ud800","x":"\\ud800"}', 'text /name', 'required /tag', 'unknown /x'],
  ['{"name":" \\udfff","tag":"\\n\\ud800"}', 'text /name', 'text /tag'],
  ['{"name":1e-400,"tag":"b"}', 'type /name'],
  ['{"name":"a","tag":"b","id":-1e400}', 'range /id'],
  ['{"name":"a","tag":"b","id":9007199254740993}', 'range /id'],
  [{ name: ' \n', tag: 'b' }, 'text /name'],
  [{ name: ' '.repeat(256), tag: 'b' }, 'length /name', 'text /name'],
  [{ name: '\u00a0\u00a0 ', tag: 'b' }, 'text /name'],
  ['{"name":"a\u0000","tag":"b"}', 'format '],
  [Buffer.from('{"name":"\xff","tag":"b"}', 'latin1'), 'format '],
  [Buffer.from('{"name":"\xed\xa0\x80","tag":"b"}', 'latin1'), 'format '],
  [Buffer.from('{"name":"a","tag":"\xc0\xaf"}', 'latin1'), 'format '],
  ['null', 'type '],
  ['5', 'type '],
  [[], 'type '],
  [{}, 'required /name', 'required /tag'],
  [{ name: null, tag: null, id: null }, 'type /name', 'type /tag', 'type /id'],
  [{ name: ['a'], tag: { b: 'c' } }, 'type /name', 'type /tag'],
  [{ name: '', tag: 'b' }, 'length /name'],
  [{ name: ' \u00a0', tag: 'b' }, 'text /name'],
  [{ name: text(256), tag: 'b' }, 'length /name'],
  [{ name: text(256, '🌿'), tag: 'b' }, 'length /name'],
  [{ name: 'a', tag: text(256) }, 'length /tag'],
  [{ name: 'a\nb', tag: 'b' }, 'text /name'],
  [{ name: 'a', tag: 'b\u0000' }, 'text /tag'],
  [{ name: 'a\u007f', tag: 'b' }, 'text /name'],
  ['{"name":"a","tag":"\\udc00\\ud800"}', 'text /tag'],
  [{ name: 'a', tag: 'b', id: '7' }, 'type /id'],
  [{ name: 'a', tag: 'b', id: -1 }, 'range /id'],
  [{ name: 'a', tag: 'b', id: 1.5 }, 'type /id'],
  [{ name: 'a', tag: 'b', id: true }, 'type /id'],
  ['{"name":"a","tag":"b","id":9007199254740992}', 'range /id'],
  ['{"name":"a","tag":"b","id":1e400}', 'range /id'],
  [{ name: 'a', tag: 'b', ID: 7 }, 'unknown /ID'],
  [{ name: 'a', tag: 'b', 'x/y~z': 7 }, 'unknown /x~1y~0z'],
  ['{"name":"a","tag":"b","__proto__":{}}', 'unknown /__proto__'],
  [{ name: 1, tag: 2, id: 'x', colour: 'red' }, 'unknown /colour', 'type /name', 'type /tag', 'type /id'],
  [`{"name":"a","tag":"b","x":${'['.repeat(8000)}1e1${']'.repeat(8000)}}`, 'unknown /x'],
  [`${'['.repeat(8000)}1e1${']'.repeat(8000)}`, 'type '],
  [{ name: 'a\u0085', tag: '\u009f' }, 'text /name', 'text /tag'],
]

/** Queries of the list operation and their faults: the code, and the parameter. */
const queries: [query: string, ...faults: string[]][] = [
  ['limit=', 'type limit'],
  ['limit', 'type limit'],
  ['limit=-1', 'range limit'],
  ['limit=-007', 'range limit'],
  [`limit=-${text(400, '9')}`, 'range limit'],
  ['limit=1e3', 'type limit'],
  ['limit=0x10', 'type limit'],
  ['limit=%2B5', 'type limit'],
  ['limit=+5', 'type limit'],
  ['limit=%205', 'type limit'],
  ['limit=%D9%A5', 'type limit'],
  ['limit=%zz', 'type limit'],
  ['limit=1&limit=1', 'format limit'],
  ['limit=9007199254740992', 'range limit'],
  [`limit=${text(400, '9')}`, 'range limit'],
  ['limt=5', 'unknown limt'],
  ['Limit=5', 'unknown Limit'],
  ['limit[]=5', 'unknown limit[]'],
  ['=5', 'unknown '],
  ['__proto__=1', 'unknown __proto__'],
  ['toString=1', 'unknown toString'],
  ['after=', 'format after'],
  ['after=5', 'format after'],
  ['after=1-AAAAAAAAAAA', 'format after'],
  ['after=zzzzzzzzzzz-AAAAAAAAAAA', 'format after'],
  ['after=1-AAAAAAAAAAA&after=1-AAAAAAAAAAA', 'format after'],
  [`after=${text(65)}`, 'length after'],
  ['limit=x&after=made_up', 'type limit', 'format after'],
  ['after=1-aaaaaaaaaa%0A', 'format after'],
  ['limit=x&offset=1&after=1&after=2', 'unknown offset', 'type limit', 'format after'],
]

/** All else: what is sent and its status. */
const others: [title: string, status: number, parts: Parts][] = [
  ['a query on the add operation', 400, { target: '/plants?limit=1', body: JSON.stringify(good) }],
  ['a path that is no UTF-8', 400, { target: '/%ff' }],
  ['a path with a broken escape', 400, { target: '/plants/%zz' }],
  ['no Host', 400, { headers: { Host: undefined } }],
  ['no token', 401, { headers: { Authorization: undefined } }],
  ['two tokens', 401, { headers: { Authorization: `Bearer ${token}, Bearer ${token}` } }],
  [
    'a token in the query',
    401,
    { target: `/plants?access_token=${token}`, headers: { Authorization: undefined } },
  ],
  ['an unknown path', 404, { target: '/plant' }],
  ['a slash too many', 404, { target: '/plants/' }],
  ['another case', 404, { target: '/Plants' }],
  ['no token on an unknown path', 404, { target: '/x', headers: { Authorization: undefined } }],
  ['a path out of the docs', 404, { target: '/docs/static/../../package.json' }],
  ['an escaped path out of the docs', 404, { target: '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json' }],
  ['an unknown file of the docs', 404, { target: '/docs/static/nothing.js' }],
  ['a path that is very long', 404, { target: `/${text(5000)}` }],
  ['PUT', 405, { method: 'PUT', body: JSON.stringify(good) }],
  ['PATCH', 405, { method: 'PATCH' }],
  ['DELETE', 405, { method: 'DELETE' }],
  ['TRACE', 405, { method: 'TRACE' }],
  ['PROPFIND', 405, { method: 'PROPFIND' }],
  ['QUERY', 405, { method: 'QUERY' }],
  ['DELETE of an absolute URL', 405, { method: 'DELETE', target: 'http://plants.test/plants' }],
  ['POST to the docs', 405, { method: 'POST', target: '/docs' }],
  ['POST to the contract', 405, { method: 'POST', target: '/openapi.yaml' }],
  ['a known id with another name', 409, { body: JSON.stringify({ ...good, name: 'Black alder' }) }],
  ['a body that is too large', 413, { body: JSON.stringify({ name: 'a', tag: 'b' }).padEnd(16 * 1024 + 1) }],
  ['a body that says it is too large', 413, { body: '{}', headers: { 'Content-Length': '1000000000000' } }],
  [
    'a chunked body that becomes too large',
    413,
    {
      body: `5000\r\n${text(0x5000, ' ')}\r\n0\r\n\r\n`,
      headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
    },
  ],
  ['a URL that is too long', 414, { target: `/plants?limit=${text(8200, '1')}` }],
  ['no media type', 415, { body: '{}', headers: { 'Content-Type': undefined } }],
  ['an empty media type', 415, { body: '{}', headers: { 'Content-Type': '' } }],
  ['text', 415, { body: '{}', headers: { 'Content-Type': 'text/plain' } }],
  [
    'a media type that only begins like JSON',
    415,
    { body: '{}', headers: { 'Content-Type': 'application/jsonl' } },
  ],
  ['a media type that is none', 415, { body: '{}', headers: { 'Content-Type': 'application/json x' } }],
  ['another charset', 415, { body: '{}', headers: { 'Content-Type': 'application/json; charset=latin1' } }],
  ['UTF-16', 415, { body: '{}', headers: { 'Content-Type': 'application/json;charset="UTF-16"' } }],
  [
    'another charset behind UTF-8',
    415,
    { body: '{}', headers: { 'Content-Type': 'application/json;charset=utf-8;charset=latin1' } },
  ],
  ['a compressed body', 415, { body: 'x', headers: { 'Content-Encoding': 'gzip' } }],
  [
    'an encoding that is none',
    415,
    { body: JSON.stringify(good), headers: { 'Content-Encoding': 'identity' } },
  ],
  ['a header that is too long', 431, { headers: { 'X-Long': text(20_000) } }],
  [
    'too many headers',
    431,
    { headers: Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`X-Header-${n}`, text(20)])) },
  ],
]

const auth = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
const json = `${auth}Content-Type: application/json\r\n`

/** Bytes that are no request at all. */
const garbage: [title: string, status: number, bytes: string][] = [
  ['no request line', 400, 'hello\r\n\r\n'],
  ['a greeting of TLS', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['a greeting of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a method that HTTP does not know', 400, `PLANT /plants HTTP/1.1\r\n${auth}\r\n`],
  ['the same without a token, on a path that is unknown', 400, 'FOO /x HTTP/1.0\r\n\r\n'],
  ['a method in lower case', 400, `get /plants HTTP/1.1\r\n${auth}\r\n`],
  ['the beginning of a method', 400, `GE /plants HTTP/1.1\r\n${auth}\r\n`],
  ['a method of RTSP', 400, `DESCRIBE /plants HTTP/1.1\r\n${auth}\r\n`],
  ['a method that is no token', 400, `(FOO /plants HTTP/1.1\r\n${auth}\r\n`],
  ['no method', 400, ` /plants HTTP/1.1\r\n${auth}\r\n`],
  ['an unknown method of HTTP/0.9', 400, 'FOO /plants\r\n\r\n'],
  ['an unknown version', 400, `GET /plants HTTP/3.7\r\n${auth}\r\n`],
  ['a target without a slash', 400, `GET plants HTTP/1.1\r\n${auth}\r\n`],
  ['a NUL in the target', 400, `GET /pla\0nts HTTP/1.1\r\n${auth}\r\n`],
  ['a header without a colon', 400, `GET /plants HTTP/1.1\r\n${auth}broken\r\n\r\n`],
  ['a header with a space in its name', 400, `GET /plants HTTP/1.1\r\n${auth}X Y: z\r\n\r\n`],
  ['a NUL in a header', 400, `GET /plants HTTP/1.1\r\n${auth}X: \0\r\n\r\n`],
  ['line ends without a carriage return', 400, `GET /plants HTTP/1.1\n${auth.replaceAll('\r', '')}\n`],
  ['a length that is no number', 400, `POST /plants HTTP/1.1\r\n${json}Content-Length: abc\r\n\r\n`],
  ['two lengths', 400, `POST /plants HTTP/1.1\r\n${json}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
  [
    'a length and chunks',
    400,
    `POST /plants HTTP/1.1\r\n${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`,
  ],
  ['a chunk that is none', 400, `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`],
  [
    'an unknown transfer coding before chunks',
    400,
    `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'chunks twice',
    400,
    `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'a plant with a byte behind it',
    400,
    `POST /plants HTTP/1.1\r\n${json}Content-Length: 21\r\n\r\n{"name":"a","tag":""}x`,
  ],
  ['an unknown transfer encoding', 400, `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: gzip\r\n\r\n{}`],
]

/** It holds one plant, to which no test adds. */
let service: Running
before(async () => {
  service = await startApp(tap)
  await request(`${service.url}/plants`, { body: good })
})

/** Sends a request that must be answered with a problem of a status. */
async function refuse(t: Test, status: number, parts: Parts) {
  const answer = await send(service.port, compose(parts))
  return { ...assertProblem(t, answer, status), headers: answer.headers }
}

const faults = ({ errors = [] }: Pick<Problem, 'errors'>) =>
  errors.map(({ code, pointer, parameter }) => `${code} ${pointer ?? parameter}`).sort()

test('a bad body is 400 and each of its faults is named', async (t) => {
  for (const [body, ...expected] of bodies) {
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const title = String(bytes)
      .replace(/[^ -~]/g, '.')
      .slice(0, 100)
    t.same(faults(await refuse(t, 400, { body: bytes })), expected.sort(), title)
  }
})

test('a bad query is 400 and each of its faults is named', async (t) => {
  for (const [query, ...expected] of queries)
    t.same(faults(await refuse(t, 400, { target: `/plants?${query}` })), expected.sort(), query)
  const both = await refuse(t, 400, { target: '/plants?x=1', body: '{"name":"a"}' })
  t.same(faults(both), ['required /tag', 'unknown x'], 'together with those of the body')
})

test('what is wrong with the head of a request is named', async (t) => {
  const heads: [parts: Parts, fault: object][] = [
    [{ headers: { Host: undefined } }, { code: 'required', parameter: 'Host' }],
    [{ method: 'POST' }, { code: 'required', pointer: '' }],
    [{ target: '/%ff' }, { code: 'format', detail: 'The path is not a valid URL path.', pointer: '' }],
  ]
  for (const [parts, fault] of heads) {
    const { errors } = await refuse(t, 400, parts)
    t.match(errors, [fault])
    t.equal(errors?.length, 1)
  }
})

test('other bad requests have their status', async (t) => {
  for (const [title, status, parts] of others) {
    t.comment(title)
    const { headers, ...problem } = await refuse(t, status, parts)
    if (status === 413) t.equal(problem.title, 'Content Too Large')
    if (status === 405 && /plants$/.test(String(parts.target ?? '/plants')))
      t.equal(headers.get('allow'), 'GET, HEAD, POST')
  }
})

test('bytes that are no request are answered, and the connection ends', async (t) => {
  const { app, port } = service
  const { keepAliveTimeout } = app.server
  // A connection that is kept would end as well, and much later.
  app.server.keepAliveTimeout = 1
  for (const [title, status, bytes] of garbage) {
    const answers = await exchange(port, Buffer.from(bytes, 'latin1'), Number.POSITIVE_INFINITY)
    t.equal(answers.length, 1, title)
    if (answers[0]) assertProblem(t, answers[0], status)
    t.equal(answers[0]?.headers.get('connection'), 'close', title)
  }
  app.server.keepAliveTimeout = keepAliveTimeout
})

/** Hosts that RFC 9110, section 7.2, allows. */
const hosts = ['', 'a', 'a:', 'a:80', '127.0.0.1:3000', '[::1]:3000', "a_b~c!$&'()*+,;=%20"]

test('any well-formed Host is accepted, and HTTP/1.0 needs none', async (t) => {
  for (const host of hosts)
    t.equal((await send(service.port, compose({ headers: { Host: host } }))).status, 200, host)
  const bytes = `GET /plants HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`
  t.match(await send(service.port, bytes), { status: 200 })
})

test('an internal error is 500 and reveals no internals', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t))
  const log = { ...store.log, head: () => Promise.reject(new Error('secret of the inside')) }
  const { url } = await startApp(t, '', { store: { ...store, log } })
  const answer = await request(`${url}/plants`)
  assertProblem(t, answer, 500)
  t.notMatch(answer.text, /secret|inside|stack/)
})

/** The largest that is taken; of a head it is the first that is refused. */
const [maxUrlBytes, maxHeadBytes, maxBodyBytes] = [8 * 1024, 16 * 1024, 16 * 1024]

/** A good target of a length. */
const makeTarget = (length: number) => '/plants?limit='.padEnd(length - 1, '0').concat('5')

/** A request whose target, names and values have so many bytes together: only they are counted. */
function makeHead(bytes: number, target = '/plants'): Parts {
  const counted = compose({ target })
    .toString()
    .replace(/ HTTP\/1\.1|GET |: |\r\n/g, '').length
  return { target, headers: { 'X-Long': 'x'.repeat(bytes - counted - 'X-Long'.length) } }
}

/** Requests of the largest size, and of one byte more. */
const sizes: [title: string, status: number, parts: Parts][] = [
  ['the longest target', 200, { target: makeTarget(maxUrlBytes) }],
  ['one byte more', 414, { target: makeTarget(maxUrlBytes + 1) }],
  ['the largest head', 200, makeHead(maxHeadBytes - 1)],
  ['one byte more', 431, makeHead(maxHeadBytes)],
  ['the longest target in a head that is too large', 431, makeHead(maxHeadBytes, makeTarget(maxUrlBytes))],
  ['the same, and far too large', 431, makeHead(3 * maxHeadBytes, makeTarget(maxUrlBytes))],
  ['a target that is too long', 414, makeHead(maxHeadBytes - 1, makeTarget(maxUrlBytes + 1))],
  ['the largest body', 200, { body: JSON.stringify(good).padEnd(maxBodyBytes) }],
  ['one byte more', 413, { body: JSON.stringify(good).padEnd(maxBodyBytes + 1) }],
]

test('what is as large as is taken is answered, and one byte more is refused', async (t) => {
  for (const [title, status, parts] of sizes) {
    const answer = await send(service.port, compose(parts))
    t.equal(answer.status, status, title)
    if (status !== 200) assertProblem(t, answer, status)
  }
})

test('a head that comes bit by bit has the same limit', async (t) => {
  const { app, port } = service
  for (const [whole, status] of [
    [compose(makeHead(maxHeadBytes - 1)), 200],
    [compose(makeHead(maxHeadBytes)), 431],
    [compose({ target: makeTarget(2 * maxHeadBytes) }), 431],
  ] as const) {
    const came = once(app.server, 'connection')
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
    socket.on('error', () => {})
    const [accepted] = await came
    for (let from = 0; from < whole.length && !accepted.destroyed && received === ''; from += 1000) {
      const read = accepted.bytesRead
      socket.write(whole.subarray(from, from + 1000))
      while (accepted.bytesRead === read && !accepted.destroyed) await new Promise(setImmediate)
    }
    while (readAnswers(received).length === 0) await once(socket, 'data')
    socket.destroy()
    t.equal(readAnswers(received)[0]?.status, status)
  }
})

test('after all that the store holds what it held, and the service goes on', async (t) => {
  const { text } = await request(`${service.url}/plants`)
  t.equal(text, JSON.stringify([{ name: good.name, tag: good.tag }]))
})
