// The access log: one line per request, true to what happened, whatever clients send.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { makeAccessLog } from '../../src/http/access-log.ts'
import type { Exchange } from '../../src/http/connection/exchange.ts'
import type { Trace } from '../../src/http/connection/request-ids.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { openFailing } from '../support/failing-store.ts'
import { request, type Service, startApp, startService } from '../support/service.ts'
import { compose, exchange, send } from '../support/wire.ts'

type Line = { level: number; time: number; msg: string; url: string; status: number; [name: string]: unknown }

/** Ends a service and returns what it logged. */
async function readLog(t: Test, service: Service): Promise<Line[]> {
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  const lines = service.output().stderr.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line))
}

const accessLines = (lines: Line[]) => lines.filter(({ msg }) => msg === 'request')

test('there is one line for every request, with its outcome', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  const port = Number(new URL(service.url).port)
  const beforeMs = Date.now()
  await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } })
  await request(`${service.url}/plants?limit=1`)
  await request(`${service.url}/plants`, { headers: { authorization: '' } })
  await request(`${service.url}/nothing/"\\ü`)
  await send(port, compose({ target: '/%ff' }))
  await send(port, compose({ target: '/plants', headers: { 'If-None-Match': '*' } }))
  await send(port, compose({ target: '/a"b\\c' }))
  const lines = accessLines(await readLog(t, service))
  t.match(
    lines.map(({ method, url, status, level }) => [method, url, status, level]),
    [
      ['POST', '/plants', 200, 30],
      ['GET', '/plants?limit=1', 200, 30],
      ['GET', '/plants', 401, 30],
      ['GET', '/nothing/%22/%C3%BC', 404, 30],
      ['GET', '/%ff', 400, 30],
      ['GET', '/plants', 304, 30],
      // A quotation mark or a backslash stays what it is.
      ['GET', '/a"b\\c', 404, 30],
    ],
  )
  t.equal(lines.length, 7)
  for (const line of lines) {
    t.equal(line.remoteAddress, '127.0.0.1')
    t.ok(line.time >= beforeMs && line.time <= Date.now())
    t.ok(Number(line.durationMs) >= 0)
  }
})

test('a line says which route was taken, by whom, how much was sent, and why it was refused', async (t) => {
  const service = await startService(t, { LOG_TIME: 'iso', BASE_PATH: '/store' }, createDirectory(t))
  const url = `${service.url}/store/plants`
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const added = await request(url, { body: { name: 'ä', tag: '' }, headers: { traceparent } })
  const listed = await request(`${url}?limit=5`, { headers: { 'x-request-id': 'mine' } })
  await request(url, { method: 'HEAD' })
  const refused = await request(url, { headers: { authorization: '' } })
  const lost = await request(`${service.url}/nothing`)
  const lines = accessLines(await readLog(t, service))
  const own = 'ACCESS_TOKENS 1'
  const route = '/store/plants'
  const size = ({ text }: { text: string }) => Buffer.byteLength(text)
  t.match(lines, [
    { route, status: 200, bytes: size(added), token: own, traceId: /^0af7/, spanId: 'b7ad6b7169203331' },
    { route, status: 200, bytes: size(listed), token: own, requestId: 'mine' },
    { route, status: 200, bytes: 0, token: own },
    { route, status: 401, bytes: size(refused), problem: 'unauthorized' },
    { status: 404, bytes: size(lost), problem: 'not-found' },
  ])
  t.equal(lines[0]?.requestId, added.headers.get('x-request-id'))
  t.notOk('traceId' in (lines[1] as Line) || 'problem' in (lines[1] as Line))
  t.notOk('token' in (lines[3] as Line) || 'route' in (lines[4] as Line))
  for (const { time } of lines) t.equal(new Date(time).toISOString(), time)
})

test('the line of a streamed list has its bytes', async (t) => {
  const reported: Exchange[] = []
  const report = (access: Exchange) => void reported.push(access)
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), { report })
  const item = JSON.stringify({ name: 'x'.repeat(255), tag: 'x'.repeat(255) })
  for (let n = 0; n < 2; n++)
    await store.log.append(Array.from({ length: 1000 }, () => ({ item, id: undefined })))
  const { text, headers } = await request(`${url}/plants`)
  t.equal(headers.get('content-length'), null, 'it is streamed')
  t.equal(reported[0]?.sentBytes, text.length)
})

test('the address of a client behind a trusted proxy is its own, and cannot forge a line', async (t) => {
  const forged = '9.9.9.9" \\ "x'
  const cases: [trust: string, forwarded: string, remoteAddress: string][] = [
    ['off', '9.9.9.9', '127.0.0.1'],
    ['true', '9.9.9.9', '9.9.9.9'],
    ['loopback', '9.9.9.9, 8.8.8.8', '8.8.8.8'],
    ['10.0.0.0/8', '9.9.9.9', '127.0.0.1'],
    ['true', forged, forged],
  ]
  const DATABASE_URL = await sqlite.createDatabase(t)
  for (const [TRUST_PROXY, forwarded, remoteAddress] of cases) {
    const reported: Exchange[] = []
    const report = (access: Exchange) => void reported.push(access)
    const { url } = await startApp(t, DATABASE_URL, { report, env: { TRUST_PROXY } })
    await request(`${url}/nothing`, { headers: { 'x-forwarded-for': forwarded } })
    const lines = linesOf(reported)
    t.same(
      lines.map((line) => line.remoteAddress),
      [remoteAddress],
      TRUST_PROXY,
    )
  }
})

/** What the log makes of requests, line by line. */
function linesOf(accesses: Access[], options: Parameters<typeof makeAccessLog>[1] = {}): Line[] {
  let text = ''
  const write = (lines: Uint8Array | string) => {
    text += Buffer.from(lines as Uint8Array)
  }
  const log = makeAccessLog({ write }, options)
  for (const access of accesses) log.add(access as Exchange)
  log.flush()
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

const one = {
  requestId: 'a-1',
  hasGivenId: false,
  trace: undefined,
  method: 'GET',
  url: '/plants?limit=1',
  route: '/plants',
  status: 200,
  durationMs: 1.5,
  problem: undefined,
  remoteAddress: '127.0.0.1',
  owner: 'x',
  sentBytes: 12,
}

/** What a line tells of a request. */
type Access = Pick<Exchange, keyof typeof one>

test('each line is that of its own request, however alike they are', async (t) => {
  const changes: Partial<Access>[] = [
    {},
    { requestId: 'a-2', sentBytes: 0, durationMs: 0 },
    { method: 'POST', durationMs: 0.0004 },
    { status: 304, durationMs: 9.9996 },
    { status: 404, route: undefined, owner: '', problem: 'not-found' },
    { status: 403, problem: 'forbidden', owner: 'x' },
    { status: 403, problem: 'forbidden', owner: 'y' },
    { owner: 'y' },
    { url: `/plants?${'x'.repeat(1000)}` },
    { remoteAddress: '::1', sentBytes: 1_234_567_890_123, durationMs: 123_456.789 },
    { remoteAddress: '"\\ñ', url: '/"ñ' },
    { trace: { traceId: 'f'.repeat(32), spanId: '0'.repeat(16), flags: 1 }, problem: 'invalid' },
    ...Array.from({ length: 1200 }, (_, n) => ({ url: `/plants?limit=${n}`, sentBytes: n })),
  ]
  const accesses = changes.flatMap((change) => [{ ...one, ...change }, one])
  let nowMs = 1_700_000_000_000
  const lines = linesOf(accesses, { now: () => nowMs++ })
  t.equal(lines.length, accesses.length)
  t.same(
    lines.map(({ level, time, pid, msg, ...line }) => line),
    accesses.map(
      ({ trace: { flags, ...trace } = {} as Trace, hasGivenId, owner, sentBytes, durationMs, ...access }) =>
        JSON.parse(
          JSON.stringify({
            ...access,
            ...trace,
            token: owner || undefined,
            bytes: sentBytes,
            durationMs: Number(durationMs.toFixed(3)),
          }),
        ),
    ),
  )
  const names =
    'level time requestId traceId spanId method url route status bytes durationMs remoteAddress token'
  t.strictSame(Object.keys(lines[22] as Line), `${names} problem pid msg`.split(' '))
  t.same(
    lines.map(({ time }) => time),
    lines.map((_, index) => 1_700_000_000_000 + index),
  )
})

test('of a URL a line holds 1 KiB, cut after its secrets are masked', async (t) => {
  const mask = (text: string) => text.replace('SECRET', '***')
  const url = `/plants?${'x'.repeat(1013)}SECRET${'y'.repeat(5000)}`
  const [line] = linesOf([{ ...one, url }], { mask })
  t.equal(line?.url, `/plants?${'x'.repeat(1013)}***…`)
})

test('lines of every length are whole, however many are written at once', async (t) => {
  const written: string[] = []
  const log = makeAccessLog({ write: (lines) => written.push(Buffer.from(lines as Uint8Array).toString()) })
  const count = 3000
  for (let n = 0; n < count; n++)
    log.add({ ...one, remoteAddress: 'a'.repeat((n * 7919) % 15_000) } as Exchange)
  log.flush()
  const lines = written.join('').trimEnd().split('\n')
  t.equal(lines.length, count)
  for (const [n, line] of lines.entries())
    if (JSON.parse(line).remoteAddress.length !== (n * 7919) % 15_000) t.fail(`line ${n}`)
})

test('at most a thousand pieces of lines are cached', async (t) => {
  let made = 0
  const mask = (text: string) => {
    if (text === '/first') made++
    return text
  }
  const log = makeAccessLog({ write() {} }, { mask })
  const ask = (url: string) => log.add({ ...one, url } as Exchange)
  ask('/first')
  ask('/first')
  t.equal(made, 1)
  for (let n = 0; n < 1000; n++) ask(`/${n}`)
  ask('/first')
  t.equal(made, 2, 'it was forgotten')
})

test('LOG_LEVEL says what is logged', async (t) => {
  for (const [LOG_LEVEL, count] of [
    ['trace', 1],
    ['warn', 0],
  ] as const) {
    const service = await startService(t, { LOG_LEVEL }, createDirectory(t))
    await request(`${service.url}/plants`)
    const lines = await readLog(t, service)
    t.equal(accessLines(lines).length, count, LOG_LEVEL)
    if (count === 0) t.same(lines, [])
  }
})

test('a client that went away before its answer is reported as such', async (t) => {
  const reported: Exchange[] = []
  const report = (access: Exchange) => void reported.push(access)
  const { app, port } = await startApp(t, await sqlite.createDatabase(t), { report })
  const closed = new Promise((resolve) =>
    app.server.once('connection', (socket) => socket.once('close', resolve)),
  )
  const socket = connect(port, '127.0.0.1')
  const came = once(app.server, 'request')
  socket.write(compose({ body: '{"name":', headers: { 'Content-Length': '100' } }))
  await came
  socket.resetAndDestroy()
  await closed
  await app.close()
  t.match(reported, [{ method: 'POST', url: '/plants', status: 499 }])
  t.equal(reported.length, 1)
})

test('an answer that waited behind another when its client went away counts no bytes', async (t) => {
  const reported: Exchange[] = []
  const done = Promise.withResolvers<void>()
  const report = (access: Exchange) => {
    if (reported.push(access) === 2) done.resolve()
  }
  const { store } = await openFailing(t)
  const stuck = Promise.withResolvers<never>()
  const append = () => stuck.promise
  const { app, port } = await startApp(t, '', { store: { ...store, log: { ...store.log, append } }, report })
  const answers: ServerResponse[] = []
  app.server.on('request', (_, answer) => answers.push(answer))
  const socket = connect(port, '127.0.0.1')
  socket.write(compose({ body: '{"name":"a","tag":""}' }))
  socket.write(compose({ target: '/nothing' }))
  while (!answers[1]?.headersSent) await setImmediate()
  socket.resetAndDestroy()
  await done.promise
  stuck.reject(new StoreUnavailable('nothing-added', 'as the test wants it'))
  t.same(
    reported.map(({ url, status, sentBytes }) => [url, status, sentBytes]),
    [
      ['/plants', 499, 0],
      ['/nothing', 499, 0],
    ],
  )
})

test('pipelined requests are answered and reported one by one', async (t) => {
  const reported: Exchange[] = []
  const report = (access: Exchange) => void reported.push(access)
  const { port } = await startApp(t, await sqlite.createDatabase(t), { report })
  const add = (name: string) => compose({ body: JSON.stringify({ name, tag: '' }) })
  const answers = await exchange(port, Buffer.concat([add('a'), add('b'), compose(), add('c')]), 4)
  t.same(
    answers.map(({ text }) => text),
    ['{"name":"a","tag":""}', '{"name":"b","tag":""}', answers[2]?.text, '{"name":"c","tag":""}'],
  )
  t.same(
    reported.map(({ method, status }) => [method, status]),
    ['POST', 'POST', 'GET', 'POST'].map((method) => [method, 200]),
  )
})
