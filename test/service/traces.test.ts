// Traces: what is sent to the collector about a request, and what happens when the collector fails.
import type { RequestListener } from 'node:http'
import { createServer, type Socket } from 'node:net'
import fastify, { LogController } from 'fastify'
import { type Test, test } from 'tap'
import { makeMask } from '../../src/mask.ts'
import { noMeter } from '../../src/metrics.ts'
import { tracing } from '../../src/plugins/tracing.ts'
import { version } from '../../src/version.ts'
import { assertWithin } from '../support/full.ts'
import { collectLines } from '../support/stores.ts'
import { compose, listen, send } from '../support/wire.ts'
import { startCollector } from './collector.ts'

const own = 'plant_01234567_0123456789abcdefghijABCDEFGHIJ0123_012345'

/** Starts an app with traces. The SDK reads its settings from the environment of the process. */
async function startTraced(t: Test, env: NodeJS.ProcessEnv) {
  const names = Object.keys(process.env).filter((name) => name.startsWith('OTEL_'))
  for (const name of names) delete process.env[name]
  Object.assign(process.env, env)
  const { logger, lines, find } = collectLines()
  const counts: Record<string, () => unknown> = {}
  const meter = {
    ...noMeter,
    counter: (name: string, _help: string, read: () => unknown) =>
      void Object.assign(counts, { [name]: read }),
  }
  const logController = new LogController({ disableRequestLogging: true })
  const app = fastify({ loggerInstance: logger, logController })
  await app.register(tracing, { meter, mask: makeMask([]) })
  app.addHook('onRequest', async () => {})
  app.get('/plants', async () => [])
  app.get('/refused', async () => {
    throw Object.assign(new Error('refused'), { statusCode: 400 })
  })
  app.get('/failed', async () => {
    throw new Error('failed')
  })
  const close = () => app.close()
  t.teardown(close)
  return { app, lines, find, close, lost: () => counts.plant_store_spans_dropped_total?.() }
}

test('a request has one span, named after its route, with its status', async (t) => {
  const collector = await startCollector(t)
  const { app, close } = await startTraced(t, { ...collector.env, OTEL_RESOURCE_ATTRIBUTES: 'a=b' })
  for (const url of ['/plants', '/refused', '/failed', '/none']) await app.inject(url)
  const port = Number(new URL(await app.listen()).port)
  await send(port, compose({ target: 'http://user@a.test/plants?a', headers: { Connection: 'close' } }))
  await close()
  const spans = collector.spans()
  const answered = (status: number) => ({
    kind: 'SERVER',
    attributes: { 'http.response.status_code': status },
  })
  t.match(spans, [
    { name: 'GET /plants', status: 'UNSET', ...answered(200) },
    { name: 'GET /refused', status: 'UNSET', ...answered(400) },
    { name: 'GET /failed', status: 'ERROR', ...answered(500) },
    { name: /^GET$/, status: 'UNSET', ...answered(404) },
    { name: 'GET /plants', attributes: { 'url.path': /^\/plants$/ } },
  ])
  t.notMatch(collector.received.map(({ text }) => text).join(), 'exception')
  t.match(spans[0]?.attributes, { 'http.request.method': 'GET', 'http.route': '/plants' })
  t.match(spans[0]?.resource, { 'service.name': 'plant-store', 'service.version': version, a: 'b' })
  t.equal(collector.received[0]?.url, '/v1/traces')
})

test('the standard variables set names, headers, the sampler and batches', async (t) => {
  const collector = await startCollector(t)
  const { app, find, close } = await startTraced(t, {
    ...collector.env,
    OTEL_SERVICE_NAME: 'plants-of-mine',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=secret',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    OTEL_BSP_MAX_QUEUE_SIZE: 'many',
  })
  const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  await app.inject('/plants?not-sampled')
  await app.inject({ url: '/plants', headers: { traceparent: `00-${traceId}-${spanId}-01` } })
  await close()
  const expected = { traceId, parentSpanId: spanId, resource: { 'service.name': 'plants-of-mine' } }
  t.match(collector.spans(), [expected])
  t.equal(collector.spans().length, 1)
  t.equal(collector.received[0]?.headers['x-key'], 'secret')
  await find(({ msg }) => /^OpenTelemetry: .*OTEL_BSP_MAX_QUEUE_SIZE/.test(msg))
})

test('traces contain no tokens and no values of queries', async (t) => {
  const collector = await startCollector(t)
  const { app, close } = await startTraced(t, collector.env)
  await app.inject({
    url: `/plants?token=secret-1&a=${own}`,
    headers: { authorization: `Bearer ${own}`, cookie: 'secret-2' },
  })
  await app.inject(`/${own}/x`)
  await close()
  t.equal(collector.spans().length, 2)
  for (const { text } of collector.received) t.notMatch(text, /secret-\d|0123456789abcdef/)
})

test('disabled traces load no SDK', async (t) => {
  for (const env of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }]) {
    const collector = await startCollector(t)
    const { app, close } = await startTraced(t, { ...collector.env, ...env })
    t.notOk(app.hasRequestDecorator('opentelemetry'))
    await app.inject('/plants')
    await close()
    t.same(collector.received, [])
  }
})

const answers: Record<string, RequestListener> = {
  refuses: (_request, response) => response.writeHead(403).end('secret'),
  'answers nonsense': (_request, response) => response.end('<html>'.repeat(1000)),
  resets: ({ socket }) => socket.resetAndDestroy(),
  'never answers': () => {},
}

test('a failing collector delays no request, and a shutdown by at most a second', async (t) => {
  for (const [title, answer] of Object.entries(answers)) {
    const collector = await startCollector(t)
    collector.answer(answer)
    const { app, lines, close } = await startTraced(t, collector.env)
    t.equal((await app.inject('/plants')).statusCode, 200)
    await collector.asked()
    t.equal((await app.inject('/plants')).statusCode, 200)
    const startMs = performance.now()
    await close()
    assertWithin(t, performance.now() - startMs, 2000, title)
    t.notMatch(JSON.stringify(lines), 'secret')
  }
})

test('logs an outage of the collector once at its start, with the reason, and once at its end', async (t) => {
  const collector = await startCollector(t)
  collector.answer(answers.refuses)
  const { app, lines, find, lost } = await startTraced(t, collector.env)
  await app.inject('/plants')
  const line = await find(({ msg }) => msg === 'traces cannot be sent')
  t.match(line, { level: 40, reason: 'the collector returned 403' })
  await app.inject('/plants')
  await collector.asked()
  collector.answer(undefined)
  await app.inject('/plants')
  await find(({ msg }) => msg === 'traces are sent again')
  t.equal(lines.filter(({ level }) => level === 40).length, 1)
  t.equal(lost(), 2)
})

test('reports a collector that is unreachable or supports only gRPC', async (t) => {
  // A gRPC server first sends an HTTP/2 SETTINGS frame.
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.end(Buffer.from('000006040000000000000500004000', 'hex'))
  })
  for (const [port, reason] of [
    [await listen(t, server), /^Parse Error: Expected HTTP/],
    [1, /^connect ECONNREFUSED 127\.0\.0\.1:1$/],
  ] as const) {
    const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${port}`
    const { app, find } = await startTraced(t, { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_BSP_SCHEDULE_DELAY: '20' })
    await app.inject('/plants')
    t.match(await find(({ msg }) => msg === 'traces cannot be sent'), { reason })
  }
})
