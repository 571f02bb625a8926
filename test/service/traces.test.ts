// Traces: what a span says of a request, which requests have one, and what becomes of them when nobody takes them.
import { once } from 'node:events'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { version } from '../../src/runtime/version.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { ask, findAdmin } from '../support/admin.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { openFailing } from '../support/failing-store.ts'
import { assertWithin, isFull } from '../support/full.ts'
import { collectLines, collectLog } from '../support/log-lines.ts'
import {
  endGently,
  request,
  type Service,
  startApp,
  startService,
  startThreads,
  token,
} from '../support/service.ts'
import '../support/short-limits.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { compose, send } from '../support/wire.ts'
import { type Span, startCollector } from './collector.ts'
import { makeCertificate } from './proxies.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerId = 'b7ad6b7169203331'
const overload = 'requests were refused: too many are in progress'
const outage = 'the store could not be used'
const plant = { name: 'Alder', tag: '' }
/** Too little for a retry: a failure is seen at once. */
const noRetry = { OTEL_EXPORTER_OTLP_TIMEOUT: '900' }

type Collector = Awaited<ReturnType<typeof startCollector>>

async function start(t: Test, env: NodeJS.ProcessEnv) {
  const database = await sqlite.createDatabase(t)
  const service = await startService(t, { DATABASE_URL: database, ...env }, createDirectory(t))
  endGently(t, service)
  const port = Number(new URL(service.url).port)
  return { ...service, port, database, plants: `${service.url}/plants` }
}

/** The same in this process, on one thread. */
async function startHere(t: Test, env: NodeJS.ProcessEnv) {
  const { log, logged } = collectLog()
  const database = await sqlite.createDatabase(t)
  const service = await startThreads(t, database, { THREADS: '1', ...env }, log)
  const lines = () =>
    logged()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  return { ...service, database, lines, plants: `${service.url}/plants` }
}

/** Sends a request that no other one is like, and resolves to its span. */
async function spanOf(collector: Collector, ask: () => Promise<unknown>): Promise<Span> {
  const before = new Set(collector.spans().map(({ spanId }) => spanId))
  await ask()
  return collector.find(({ spanId }) => !before.has(spanId))
}

async function end(t: Test, service: Service): Promise<number> {
  const startMs = performance.now()
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
  return performance.now() - startMs
}

const linesOf = (service: Service) =>
  service
    .output()
    .stderr.split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

test('a span has the attributes of the conventions', async (t) => {
  const collector = await startCollector(t)
  const { plants, url, port, database } = await startHere(t, collector.env)
  const startMs = Date.now()
  const added = await spanOf(collector, () => request(plants, { body: plant }))
  t.match(added, { name: 'POST /plants', kind: 'SERVER', status: 'UNSET', parentSpanId: '', flags: 0x101 })
  t.match(added.traceId, /^[0-9a-f]{32}$/)
  t.match(added.spanId, /^[0-9a-f]{16}$/)
  t.strictSame(added.attributes, {
    'http.request.method': 'POST',
    'url.path': '/plants',
    'url.scheme': 'http',
    'http.route': '/plants',
    'http.response.status_code': 200,
    'client.address': '127.0.0.1',
    'user_agent.original': 'node',
    'network.protocol.version': '1.1',
    'thread.id': 0,
  })
  const startedMs = Number(added.startNs / 1000n) / 1000
  t.ok(startedMs >= startMs - 5 && startedMs <= Date.now(), 'it began then')
  t.ok(added.endNs > added.startNs && added.endNs - added.startNs < 5_000_000_000n, 'it took its time')
  t.match(added.resource, {
    'service.name': 'plant-store',
    'service.version': version,
    'service.instance.id': /^[0-9a-f-]{36}$/,
    'telemetry.sdk.language': 'nodejs',
  })

  const listed = await spanOf(collector, () => request(`${plants}?limit=1`))
  t.match(listed, { name: 'GET /plants', attributes: { 'url.query': 'limit=1' } })
  await request(plants, { body: { ...plant, id: 1 } })
  await collector.find(({ name, spanId }) => name === 'POST /plants' && spanId !== added.spanId)
  const etag = String((await request(`${plants}?limit=3`)).headers.get('etag'))
  await collector.find(({ attributes }) => attributes['url.query'] === 'limit=3')
  const statuses: [status: number, name: string, ask: () => Promise<unknown>][] = [
    [304, 'GET /plants', () => request(`${plants}?limit=3`, { headers: { 'if-none-match': etag } })],
    [400, 'GET /plants', () => request(`${plants}?limit=x`)],
    [401, 'GET /plants', () => request(plants, { headers: { authorization: 'Bearer nobodys' } })],
    [404, 'GET', () => request(`${url}/nothing/here`)],
    [405, 'DELETE', () => request(plants, { method: 'DELETE' })],
    [405, 'HTTP', () => send(port, compose({ method: 'PURGE' }))],
    [409, 'POST /plants', () => request(plants, { body: { ...plant, id: 1, tag: 'other' } })],
  ]
  for (const [status, name, ask] of statuses) {
    const span = await spanOf(collector, ask)
    t.match(span, { name, status: 'UNSET', attributes: { 'http.response.status_code': status } }, `${status}`)
    t.notOk('error.type' in span.attributes, 'it is the client’s fault')
    t.equal(span.attributes['http.request.method'], name === 'HTTP' ? '_OTHER' : name.split(' ')[0])
  }
  const file = fileURLToPath(database)
  renameSync(file, `${file}.away`)
  const failed = await spanOf(collector, () => request(plants, { body: plant }))
  t.match(failed, { status: 'ERROR', attributes: { 'http.response.status_code': 503, 'error.type': '503' } })
})

test('a client that goes away leaves an error, with a status when it has had the head of an answer', async (t) => {
  const collector = await startCollector(t)
  const { port, store } = await startHere(t, collector.env)
  // More than the buffers of a connection hold.
  const item = JSON.stringify({ name: 'x'.repeat(250), tag: 'x'.repeat(250) })
  for (let n = 0; n < 6; n++)
    await store.log.append(Array.from({ length: 4000 }, () => ({ item, id: undefined })))

  const silent = await spanOf(collector, async () => {
    const socket = connect(port, '127.0.0.1')
    const headers = { 'Content-Type': 'application/json', 'Content-Length': '9', Expect: '100-continue' }
    socket.write(compose({ headers, method: 'POST' }))
    await once(socket, 'data')
    socket.resetAndDestroy()
  })
  t.match(silent, { status: 'ERROR', attributes: { 'error.type': 'client_closed_request' } })
  t.notOk('http.response.status_code' in silent.attributes)
  const begun = await spanOf(collector, async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(Buffer.concat([compose(), compose({ target: '/behind' })]))
    await once(socket, 'data')
    socket.resetAndDestroy()
  })
  t.match(begun.attributes, { 'error.type': 'client_closed_request', 'http.response.status_code': 200 })
  const behind = await collector.find(({ attributes }) => attributes['url.path'] === '/behind')
  t.match(behind, { status: 'ERROR', attributes: { 'error.type': 'client_closed_request' } })
  t.notOk('http.response.status_code' in behind.attributes, 'its answer waited behind the list')
})

test('the caller, its decision and the sampler say which requests have a span', async (t) => {
  const collector = await startCollector(t)
  const parent = (flags: string) => `00-${traceId}-${callerId}-${flags}`
  const cases: [env: NodeJS.ProcessEnv, sampled: string[], not: string[]][] = [
    [{}, ['', parent('01'), parent('03'), parent('ff')], [parent('00'), parent('02'), parent('fe')]],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, ['', parent('00'), parent('01')], []],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, [], ['', parent('00'), parent('01')]],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, [parent('01')], ['', parent('00')]],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' },
      // The words of an id are XORed.
      [
        `00-${'1'.padStart(32, '0')}-${callerId}-00`,
        `00-${'f00000009000000a'.padEnd(32, '0')}-${callerId}-00`,
      ],
      [
        `00-${'f0000000'.padEnd(32, '0')}-${callerId}-01`,
        `00-${'0000000180000000'.padEnd(32, '0')}-${callerId}-01`,
      ],
    ],
    [
      { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
      [`00-${'f0000000'.padEnd(32, '0')}-${callerId}-01`],
      ['', `00-${'1'.padStart(32, '0')}-${callerId}-00`],
    ],
  ]
  for (const [env, sampled, not] of cases) {
    const service = await startHere(t, { ...collector.env, ...env })
    const sent = [...sampled, ...not]
    for (const [limit, traceparent] of sent.entries())
      await request(`${service.plants}?limit=${limit}`, { headers: traceparent ? { traceparent } : {} })
    const before = collector.received.length
    await service.close()
    const { OTEL_TRACES_SAMPLER: sampler = 'the default' } = env
    const here = collector.spans().filter(({ attributes }) => attributes['url.path'] === '/plants')
    t.same(
      here.map(({ attributes }) => attributes['url.query']).toSorted(),
      sampled.map((_, limit) => `limit=${limit}`),
      `${sampler}, ${before}`,
    )
    for (const line of service.lines().filter(({ msg }) => msg === 'request')) {
      const span = here.find(({ spanId }) => spanId === line.spanId)
      const [, trace, caller] = sent[Number(line.url.split('=')[1])]?.split('-') ?? []
      t.match(line.spanId, /^[0-9a-f]{16}$/, 'sampled or not, a line names the span')
      t.match(line.traceId, trace ?? /^[0-9a-f]{32}$/)
      t.equal(line.parentSpanId, caller)
      if (span) t.match(span, { traceId: line.traceId, parentSpanId: caller ?? '' })
      if (span && caller) t.equal(span.flags, 0x301, 'its parent is elsewhere')
    }
    collector.received.length = 0
  }
})

test('tracestate goes into the span, to the path of traces below the endpoint; nothing of a trace goes out', async (t) => {
  const collector = await startCollector(t)
  const OTEL_EXPORTER_OTLP_ENDPOINT = `${collector.url}/otlp/`
  const { plants } = await startHere(t, { ...collector.env, OTEL_EXPORTER_OTLP_ENDPOINT })
  const traceparent = `00-${traceId}-${callerId}-01`
  const state = { traceparent, tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE' }
  const span = await spanOf(collector, async () => {
    const { headers } = await request(plants, { headers: state })
    t.same([headers.get('traceparent'), headers.get('tracestate')], [null, null])
  })
  t.equal(span.traceState, state.tracestate)
  const odd = await spanOf(collector, () => request(plants, { headers: { ...state, traceparent: 'x' } }))
  t.match(odd, { traceState: '', parentSpanId: '' }, 'it is nothing without a valid traceparent')
  t.equal(collector.received[0]?.url, '/otlp/v1/traces')
})

test('no token and no secret is sent, and no text of a client is longer than 1 KiB', async (t) => {
  const collector = await startCollector(t)
  const own = 'open-sesame "quoted" \\ a+b/c='
  const jwt = `eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.${'c'.repeat(86)}`
  const { plants, url, port } = await start(t, {
    ...collector.env,
    ACCESS_TOKENS: `${own},${token}`,
    TRUST_PROXY: 'true',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=for%20the%20collector',
  })
  const secrets = [makeToken().token, own, jwt]
  for (const secret of secrets) {
    const coded = encodeURIComponent(secret)
    const traceparent = `00-${traceId}-${callerId}-01`
    for (const headers of [
      { authorization: `Bearer ${secret}` },
      { 'user-agent': secret },
      { 'x-forwarded-for': secret },
      { traceparent, tracestate: `a=1,b=${secret}` },
    ] as Record<string, string>[])
      await request(plants, { headers })
    await request(`${plants}?limit=1&access_token=${coded}`)
    await request(`${plants}?after=${coded}`)
    await request(`${url}/${coded}`)
    await send(port, compose({ target: `http://me:${coded}@plants.test/plants?limit=2` }))
  }
  const long = `/${'é'.repeat(300).replaceAll('é', '%C3%A9')}`
  for (const length of [600, 2000])
    await request(url + long, { headers: { 'user-agent': 'é'.repeat(length) } })
  await send(port, compose({ target: `/plants?after=${'x'.repeat(4000)}`, method: 'PURGE' }))
  await send(port, compose({ target: `/${'x'.repeat(1010)}${secrets[0]}` }))
  await request(`${url}/last`)
  await collector.find(({ attributes }) => attributes['url.path'] === '/last')
  t.equal(collector.spans().length, 3 * 8 + 5)
  t.equal(collector.received[0]?.headers['x-key'], 'for the collector')
  const bytes = collector.received.map(({ text }) => text).join()
  for (const part of [
    'Bearer',
    'plant_',
    'quoted',
    'sesame',
    'ccccc',
    'eyJhb',
    'a+b/c',
    'a%2Bb',
    'me:',
    token,
  ])
    t.notOk(bytes.includes(part), part)
  t.ok(bytes.includes('***'))
  const texts = collector.spans().flatMap(({ attributes, name, traceState }) => {
    return [...Object.values(attributes), name, traceState]
  })
  const sizes = texts.map((text) => Buffer.byteLength(String(text)))
  t.equal(Math.max(...sizes), 1024)
  t.notOk(
    texts.some((text) => String(text).includes('\ufffd')),
    'none is cut within a character',
  )
  t.match(
    collector.spans().map(({ attributes }) => attributes['url.path']),
    ['/plants'],
  )
})

test('a batch holds as many long texts as there are', async (t) => {
  const collector = await startCollector(t)
  const texts = Array.from({ length: 30 }, (_, n) => [`key${n}`, `${n}`.repeat(500)])
  const service = await startHere(t, {
    ...collector.env,
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_RESOURCE_ATTRIBUTES: texts.map((pair) => pair.join('=')).join(),
  })
  const long = 'é'.repeat(512)
  const agents = Array.from({ length: 200 }, (_, n) => `${n} ${'a'.repeat(3000)}`)
  for (const agent of agents)
    await request(`${service.plants}?after=${encodeURIComponent(long)}`, { headers: { 'user-agent': agent } })
  await service.close()
  const spans = collector.spans()
  t.equal(collector.received.length, 1)
  t.equal(new Set(spans.map(({ spanId }) => spanId)).size, agents.length)
  t.strictSame(
    spans.map(({ attributes }) => attributes['user_agent.original']),
    agents.map((agent) => agent.slice(0, 1024)),
  )
  t.match(spans.at(-1)?.resource, Object.fromEntries(texts))
})

test('a batch is sent as soon as it is full, though no span is behind it', async (t) => {
  const collector = await startCollector(t)
  const service = await startHere(t, {
    ...collector.env,
    OTEL_BSP_SCHEDULE_DELAY: '600000',
    OTEL_BSP_MAX_QUEUE_SIZE: '3',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '3',
  })
  for (let n = 0; n < 3; n++) await request(service.plants)
  await until(() => collector.spans().length === 3)
})

test('the settings may stand in .env, and those of traces alone win', async (t) => {
  const [collector, other] = [await startCollector(t), await startCollector(t)]
  const directory = createDirectory(t)
  const lines = {
    OTEL_EXPORTER_OTLP_ENDPOINT: other.url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path?a=b`,
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=Basic%20c2VjcmV0,x-tenant=plants',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_SERVICE_NAME: 'garden',
    OTEL_RESOURCE_ATTRIBUTES:
      'deployment.environment.name=test%2C1,service.name=no,service.instance.id=seven',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  }
  const text = Object.entries(lines).map(([name, value]) => `${name}="${value}"\n`)
  writeFileSync(join(directory, '.env'), text.join(''))
  const env = { OTEL_EXPORTER_OTLP_HEADERS: 'x-of-all=1', DATABASE_URL: await sqlite.createDatabase(t) }
  const service = await startService(t, env, directory)
  endGently(t, service)
  const { url } = service
  await request(`${url}/plants`)
  const { resource } = await collector.find(() => true)
  t.match(resource, {
    'service.name': 'garden',
    'service.instance.id': 'seven',
    'deployment.environment.name': 'test,1',
  })
  const [{ headers, url: path } = { headers: {}, url: '' }] = collector.received
  t.match(headers, { authorization: 'Basic c2VjcmV0', 'x-tenant': 'plants', 'content-encoding': 'gzip' })
  t.notOk('x-of-all' in headers, 'the headers of all signals are not for traces then')
  t.equal(path, '/own/path?a=b')
  t.equal(other.attempts, 0)
})

test('a span ends when the clock of the machine says so, also after it was set', async (t) => {
  const collector = await startCollector(t)
  const TEST_CLOCK_FILE = join(createDirectory(t), 'offset')
  writeFileSync(TEST_CLOCK_FILE, '0')
  const NODE_OPTIONS = `--import=${import.meta.resolve('../store/wall-clock.ts')}`
  const { plants } = await start(t, { ...collector.env, TEST_CLOCK_FILE, NODE_OPTIONS })
  const hourMs = 3_600_000
  for (const offsetMs of [0, hourMs, -hourMs]) {
    writeFileSync(TEST_CLOCK_FILE, String(offsetMs))
    const { endNs } = await spanOf(collector, () => request(plants))
    t.ok(Math.abs(Number(endNs / 1_000_000n) - Date.now() - offsetMs) < hourMs / 2, `${offsetMs} ms`)
  }
})

test('a collector with a certificate of its own is trusted by that alone', {
  skip: skipWithout('openssl'),
}, async (t) => {
  const { key, crt } = makeCertificate(createDirectory(t))
  const tls = { key: readFileSync(key), cert: readFileSync(crt) }
  const collector = await startCollector(t, tls)
  const { plants } = await startHere(t, { ...collector.env, OTEL_EXPORTER_OTLP_CERTIFICATE: crt })
  t.match(await spanOf(collector, () => request(plants)), { name: 'GET /plants' })
  const stranger = await startHere(t, { ...collector.env, ...noRetry })
  await request(stranger.plants)
  await until(() => stranger.lines().some(({ msg }) => msg === 'traces cannot be sent'))
})

test('a bad setting is one line, without the secret in it, and exit 1', async (t) => {
  const directory = createDirectory(t)
  const bad: [name: string, value: string][] = [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318/secret'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'ftp://secret@localhost'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=secret'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=secret%0a'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'a=secret%ff'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '0'],
    ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', '1.5'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'br'],
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', 'none.pem'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/json'],
    ['OTEL_SDK_DISABLED', '1'],
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.0.0'],
    ['OTEL_BSP_SCHEDULE_DELAY', '-1'],
    ['OTEL_BSP_EXPORT_TIMEOUT', 'x'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0'],
    ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '2049'],
  ]
  for (const [name, value] of bad) {
    const { code, stdout, stderr } = await runCommand(['serve'], { [name]: value }, directory)
    t.match({ code, stdout }, { code: 1, stdout: '' }, `${name}=${value}`)
    t.match(stderr, new RegExp(`^plant-store: ${name} [^\\n]*\\n$`))
    t.notMatch(stderr, 'secret')
  }
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://me:secret@localhost/?key=secret',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=secret,b=secret',
  }
  const { stdout } = await runCommand(['config'], env, directory)
  t.match(stdout, 'https://***@localhost/?***')
  t.match(stdout, 'a=***,b=***')
  t.notMatch(stdout, 'secret')
})

test('without an endpoint, or when they are off, there are no traces and nothing is loaded for them', async (t) => {
  const collector = await startCollector(t)
  const offs = [
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_SDK_DISABLED: 'True' },
    { OTEL_TRACES_EXPORTER: 'none' },
  ]
  const sent = { headers: { traceparent: `00-${traceId}-${callerId}-01` } }
  for (const off of offs) {
    const service = await startHere(t, { ...collector.env, ...off })
    await request(service.plants, sent)
    t.notMatch(await service.metrics.write(), 'spans')
    await service.close()
    t.match(
      service.lines().find(({ msg }) => msg === 'request'),
      { traceId, spanId: callerId },
    )
  }
  const service = await start(t, { ...collector.env, OTEL_SDK_DISABLED: 'True', ADMIN_PORT: '0' })
  await request(service.plants, sent)
  t.notMatch((await ask(`${await findAdmin(service)}/metrics`)).text, 'spans')
  if (process.platform === 'linux')
    t.notMatch(readFileSync(`/proc/${service.child.pid}/maps`, 'utf8'), 'opentelemetry')
  await end(t, service)
  t.equal(collector.attempts, 0)
})

test('each thread has a processor of its own, in one instance of the service', async (t) => {
  const collector = await startCollector(t)
  const service = await startHere(t, { ...collector.env, THREADS: '2' })
  const threads = () => new Set(collector.spans().map(({ attributes }) => attributes['thread.id']))
  let sent = 0
  while (threads().size < 2) {
    await send(service.port, compose({ headers: { Connection: 'close' } }))
    sent++
  }
  t.equal(new Set(collector.spans().map(({ resource }) => resource['service.instance.id'])).size, 1)
  await until(() => collector.spans().length === sent)
  // A thread counts a batch when it has the collector's answer.
  const counted = new RegExp(`^plant_store_spans_exported_total ${sent}$`, 'm')
  await until(async () => counted.test(await service.metrics.write()))
})

/** What a collector may do to a batch. */
const faults: [name: string, (collector: Collector) => void, reason: string][] = [
  ['refuses', (collector) => collector.stop(), 'ECONNREFUSED'],
  ['hangs', (collector) => collector.answer(() => {}), 'timed out'],
  ['says 429', (collector) => collector.answer((_, response) => response.writeHead(429).end()), 'retryable'],
  [
    'says 400',
    (collector) => collector.answer((_, response) => response.writeHead(400).end('secret')),
    '400',
  ],
]

const trickles: (typeof faults)[number] = [
  'never ends its answer',
  (collector) =>
    collector.answer((_, response) => {
      const writing = setInterval(() => response.write(' '), 100)
      response.on('close', () => clearInterval(writing))
    }),
  'timed out',
]

for (const [name, fail, reason] of [...faults, trickles])
  test(`a collector that ${name} costs two lines, bounded spans and no request`, async (t) => {
    const collector = await startCollector(t)
    const limits = {
      OTEL_BSP_MAX_QUEUE_SIZE: '4',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
      ...noRetry,
      ...(reason === 'timed out' && { OTEL_BSP_EXPORT_TIMEOUT: '900' }),
    }
    const service = await startHere(t, { ...collector.env, ...limits })
    const count = async (kind: string) => {
      const text = await service.metrics.write()
      return Number(new RegExp(`^plant_store_spans_${kind}_total (\\d+)$`, 'm').exec(text)?.[1])
    }
    await spanOf(collector, () => request(service.plants))
    await until(async () => (await count('exported')) === 1)
    fail(collector)
    const { attempts } = collector
    for (let n = 0; n < 20; n++) t.equal((await request(service.plants)).status, 200)
    await until(async () => (await count('dropped')) === 20)
    if (name === 'hangs') t.ok(collector.attempts - attempts < 10, 'what is too much is never sent')
    t.equal(await count('exported'), 1)
    collector.answer(undefined)
    if (name === 'refuses') await collector.start()
    await spanOf(collector, () => request(service.plants))
    await until(() => service.lines().some(({ msg }) => msg === 'traces are sent again'))
    const told = service.lines().filter(({ msg }) => /traces/.test(msg))
    t.match(told, [{ level: 40, msg: 'traces cannot be sent' }, { level: 30 }])
    t.equal(told.length, 2)
    t.match(told[0].reason, reason)
    t.notMatch(JSON.stringify(service.lines()), 'secret')
  })

test('at the end what is left is sent, or told of', async (t) => {
  const collector = await startCollector(t)
  const env = { THREADS: '2', OTEL_BSP_SCHEDULE_DELAY: '60000', NODE_OPTIONS: '' }
  const service = await start(t, { ...collector.env, ...env })
  for (let n = 0; n < 10; n++) await send(service.port, compose({ headers: { Connection: 'close' } }))
  t.equal(collector.attempts, 0)
  await end(t, service)
  const told = linesOf(service).filter(({ msg }) => msg === 'spans were not sent before the end')
  t.equal(
    told.reduce((sum, { spans }) => sum + spans, collector.spans().length),
    10,
  )
})

for (const [name, fail] of faults)
  for (const threads of name === 'hangs' ? ['1', '2'] : ['1'])
    test(`the end, with ${threads} threads while a collector ${name}, comes in time`, async (t) => {
      const collector = await startCollector(t)
      // A process of its own where nothing but its end shows that it can end; in full always.
      const begin = isFull || threads === '2' ? startEnding : startEndingHere
      const env = { ...collector.env, ...noRetry, THREADS: threads }
      const ofNoneMs = isFull ? await (await startEnding(t, { THREADS: threads })).end() : 0
      const service = await begin(t, env)
      fail(collector)
      for (let n = 0; n < 8; n++) await send(service.port, compose({ headers: { Connection: 'close' } }))
      if (name === 'says 400') await until(() => service.troubles() > 0)
      assertWithin(t, await service.end(), ofNoneMs + 1000)

      const failing = await (isFull ? startEnding : startEndingHere)(t, env)
      for (let n = 0; n < 32; n++) await send(failing.port, compose({ headers: { Connection: 'close' } }))
      await until(() => failing.troubles() === Number(threads))
      assertWithin(t, await failing.end(), ofNoneMs + 100, 'it does not wait for what cannot be sent')
    })

const countTroubles = (lines: { msg: string }[]) =>
  lines.filter(({ msg }) => msg === 'traces cannot be sent').length

async function startEnding(t: Test, env: NodeJS.ProcessEnv) {
  const service = await start(t, env)
  const troubles = () => countTroubles(linesOf(service))
  return { port: service.port, troubles, end: () => end(t, service) }
}

async function startEndingHere(t: Test, env: NodeJS.ProcessEnv) {
  const { port, lines, close } = await startHere(t, env)
  const end = async () => {
    const startMs = performance.now()
    await close()
    return performance.now() - startMs
  }
  return { port, troubles: () => countTroubles(lines()), end }
}

test('the lines of failures name the trace', async (t) => {
  const { store, faults } = await openFailing(t)
  const { logger, find } = collectLines()
  const beginSpan = () => ({ traceId, spanId: callerId, flags: 1, parent: null })
  const { url } = await startApp(t, '', { store, logger, beginSpan })
  const failures = { broken: 'a request failed', overloaded: overload, 'nothing-added': outage } as const
  for (const [fault, words] of Object.entries(failures)) {
    faults.push(fault as keyof typeof failures)
    t.ok((await request(`${url}/plants`, { body: plant })).status >= 500)
    const line = await find(({ msg }) => msg === words)
    t.match(line, { traceId, spanId: callerId }, words)
  }
})
