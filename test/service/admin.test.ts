// The admin server: liveness, readiness and metrics, on another port.
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAdmin } from '../../src/plugins/admin.ts'
import type { Store } from '../../src/store/engine.ts'
import { spawnCli } from '../support/commands.ts'
import { createDirectory, engines } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { assertProblem } from '../support/problem.ts'
import { root, run } from '../support/processes.ts'
import { ask, findAdmin, request, startService } from '../support/service.ts'
import { silent } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { compose, exchange, send } from '../support/wire.ts'

const ready = { status: 200, text: '{"status":"ready"}' }
const unready = (reason: string) => ({ status: 503, text: `{"status":"unready","reason":"${reason}"}` })
const deploy = join(root, 'deploy')
const noPromtool = skipWithout('promtool')

/** A store with only what the admin server uses. */
function makeStore({ append = async () => {}, head = async () => ({ position: 7 }) } = {}): Store {
  return { log: { append, head } } as never
}

/** Starts an admin server without a service. */
async function startAdmin(t: Test, databaseUrl = 'postgres://a/b', droppedLines = () => 0) {
  const settings = { adminHost: '127.0.0.1', adminPort: 0, databaseUrl }
  const admin = await openAdmin(settings, { logger: silent, droppedLines })
  t.teardown(admin.close)
  return { ...admin, url: admin.origin }
}

test('the service is not ready while its store cannot be written or does not respond', async (t) => {
  const [hanging, draining] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let state: 'works' | 'fails' | 'hangs' | 'drains' = 'works'
  let asked = 0
  const answers = {
    works: async () => {},
    fails: () => Promise.reject(new Error('secret of the inside')),
    hangs: () => hanging.promise,
    drains: () => draining.promise,
  }
  const { url, attachStore, drain } = await startAdmin(t)
  const starting = await ask(`${url}/readyz`)
  t.match(starting, unready('starting'))
  t.equal(starting.headers.get('retry-after'), '1')
  const append = () => {
    asked++
    return answers[state]()
  }
  attachStore(makeStore({ append }))
  t.match(await ask(`${url}/readyz?verbose`), ready)
  state = 'fails'
  t.match(await ask(`${url}/readyz`), unready('store-not-writable'))
  state = 'hangs'
  asked = 0
  const both = await Promise.all([1, 2].map(() => ask(`${url}/readyz`)))
  for (const answer of both) t.match(answer, unready('store-not-writable'))
  t.equal(asked, 1, 'a store that does not answer is asked once')
  t.match(await ask(`${url}/livez`), { status: 200, text: '{"status":"live"}' })
  hanging.resolve()
  state = 'drains'
  const early = ask(`${url}/readyz`)
  await until(() => asked === 2)
  drain()
  draining.resolve()
  t.match(await early, unready('draining'))
  t.match(await ask(`${url}/readyz`), unready('draining'))
  const unread = await startAdmin(t)
  unread.attachStore(makeStore({ head: () => Promise.reject(new Error('no head')) }))
  t.match(await ask(`${unread.url}/readyz`), unready('store-not-writable'))
})

test('the admin server returns errors as problems, and every response has its headers', async (t) => {
  const { url } = await startAdmin(t)
  const { headers } = await ask(`${url}/livez`, { method: 'HEAD' })
  t.match([headers.get('cache-control'), headers.get('x-content-type-options')], ['no-store', 'nosniff'])
  const port = Number(new URL(url).port)
  const bytes = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\n\r\n`
  const expecting = bytes('GET /livez').replace('\r\n\r\n', '\r\nExpect: more\r\n\r\n')
  t.equal((await send(port, expecting)).status, 200)
  for (const [line, status] of [
    ['NONSENSE /livez', 400],
    ['GET /%ff', 400],
    ['POST /livez', 405],
    ['DESCRIBE /livez RTSP/1.0\r\nx:', 405],
    ['GET /nothing', 404],
  ] as const)
    assertProblem(t, await send(port, bytes(line)), status)
  assertProblem(t, await send(port, 'GET /livez HTTP/1.1\r\n\r\n'), 400)
})

test('the metrics omit values that the store does not return in time', async (t) => {
  let head = async (): Promise<{ position: number }> => ({ position: 7 })
  const { url, attachStore, meter } = await startAdmin(t)
  attachStore(makeStore({ head: () => head() }))
  const readMetrics = async () => (await ask(`${url}/metrics`)).text
  const first = await readMetrics()
  t.match(first, '\nplant_store_head_position 7\n')
  t.match(first, '\nplant_store_ready 1\n')
  for (const failing of [() => new Promise<never>(() => {}), () => Promise.reject(new Error('secret'))]) {
    head = failing
    const text = await readMetrics()
    t.notMatch(text, /^plant_store_head_position \d/m)
    t.match(text, /^process_cpu_seconds_total /m)
    t.notMatch(text, 'secret')
  }
  meter.counter('broken_total', 'A bug.', () => {
    throw new Error('secret')
  })
  const broken = await ask(`${url}/metrics`)
  t.equal(broken.status, 500)
  t.notMatch(broken.text, 'secret')
})

test('metrics have labels, and requests are counted by method, route and status', async (t) => {
  const { url, meter, count } = await startAdmin(t, 'file:x.db', () => 3)
  meter.counter('a_total', 'A.', () => ({ x: 1, y: 2 }), 'label')
  const observe = meter.histogram('b_seconds', 'B.', [1, 2], ['good', 'bad'])
  observe(1.5, 'good')
  const answer = (method: string, url: string | undefined, status: number, problem?: string) =>
    count({ method, routeOptions: { url } } as never, { problem } as never, { status, durationMs: 2 })
  answer('HEAD', '/plants', 200)
  for (const status of [401, 499]) answer('PROPFIND', undefined, status, 'unauthorized')
  // A second scrape has the same counts.
  await ask(`${url}/metrics`)
  const { text, headers } = await ask(`${url}/metrics`)
  t.match(headers.get('content-type'), /^text\/plain/)
  for (const line of [
    'a_total{label="y"} 2',
    'b_seconds_bucket{le="1",outcome="good"} 0',
    'b_seconds_bucket{le="2",outcome="good"} 1',
    'b_seconds_count{outcome="bad"} 0',
    'http_request_duration_seconds_bucket{le="0.0025",method="HEAD",route="/plants",status="200"} 1',
    'http_request_duration_seconds_count{method="other",route="other",status="401"} 1',
    'plant_store_problems_total{problem="unauthorized"} 1',
    'plant_store_problems_total{problem="rate-limited"} 0',
    'plant_store_log_lines_dropped_total 3',
    'plant_store_ready 0',
  ])
    t.ok(text.includes(`\n${line}\n`), line)
  t.match(text, /^plant_store_build_info\{version="[^"]+",node="v[^"]+",engine="sqlite"\} 1$/m)
})

/** Starts a service and waits until it is ready. */
async function startReady(t: Test, env: NodeJS.ProcessEnv) {
  const service = await startService(t, { ADMIN_PORT: '0', ...env }, createDirectory(t))
  const admin = await findAdmin(service)
  await until(async () => (await ask(`${admin}/readyz`)).status === 200)
  t.match(await ask(`${admin}/livez`), { status: 200 })
  t.equal((await request(`${service.url}/metrics`)).status, 404)
  return { service, admin }
}

for (const engine of engines)
  test(`${engine.name}: promtool accepts the metrics of a service`, { skip: noPromtool }, async (t) => {
    const more = {
      OIDC_ISSUER: 'https://127.0.0.1:1',
      OIDC_AUDIENCE: 'a',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    }
    const { service, admin } = await startReady(t, { DATABASE_URL: await engine.createDatabase(t), ...more })
    await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } })
    for (const query of ['limit=1', 'limit=x']) await request(`${service.url}/plants?${query}`)
    await send(Number(new URL(service.url).port), 'no HTTP\r\n\r\n')
    const read = async () => (await ask(`${admin}/metrics`)).text
    await until(async () => (await read()).includes('\nplant_store_head_position 1\n'))
    const text = await read()
    t.match(text, '\nplant_store_problems_total{problem="invalid-request"} 2\n')
    t.match(text, /^http_request_duration_seconds_count\{method="POST",route="\/plants",status="200"\} 1$/m)
    t.match(await run('promtool', ['check', 'metrics'], { input: text }), { code: 0, stderr: '' })
    t.match(await service.stop(), { code: 0 })
  })

test('promtool accepts the alerts, and their tests pass', { skip: noPromtool }, async (t) => {
  t.match(await run('promtool', ['check', 'rules', join(deploy, 'prometheus-rules.yml')]), { code: 0 })
  t.match(await run('promtool', ['test', 'rules', join(deploy, 'prometheus-rules.test.yml')]), { code: 0 })
})

test('with DRAIN_DELAY still responds after SIGTERM, but is not ready', async (t) => {
  const { service, admin } = await startReady(t, { DRAIN_DELAY: '3600' })
  service.child.kill('SIGTERM')
  await until(async () => (await ask(`${admin}/readyz`)).status === 503)
  t.match(await ask(`${admin}/readyz`), unready('draining'))
  for (const late of [compose({ body: '{"name":"late","tag":""}' }), compose()]) {
    const answers = await exchange(Number(new URL(service.url).port), late, Number.POSITIVE_INFINITY)
    t.match(answers, [{ status: 200, headers: new Map([['connection', 'close']]) }])
  }
  // A second signal ends the wait, unless it arrives so soon that it repeats the first.
  await new Promise((resolve) => setTimeout(resolve, 600))
  t.match(await service.stop(), { code: 0 })
})

test('is live but not ready until its database responds, and exits at once on SIGTERM', async (t) => {
  const [port, ADMIN_PORT] = await findPorts(2)
  const DATABASE_URL = `postgres://nobody:secret@127.0.0.1:${port}/plants`
  const env = { PORT: '0', ADMIN_PORT: `${ADMIN_PORT}`, DRAIN_DELAY: '3600', DATABASE_URL }
  const service = spawnCli(t, ['serve'], env)
  const admin = `http://127.0.0.1:${ADMIN_PORT}`
  const isLive = () => ask(`${admin}/livez`).then(({ status }) => status === 200)
  await until(() => isLive().catch(() => false))
  t.match(await ask(`${admin}/readyz`), unready('starting'))
  t.match(await service.stop(), { code: 0, signal: null })
  t.notMatch(service.output().stderr, /secret|incoming/)
})

test('the health check of the image queries the service directly, not through a proxy', async (t) => {
  const { url, drain, attachStore } = await startAdmin(t)
  attachStore(makeStore())
  const { port } = new URL(url)
  const nowhere = 'http://127.0.0.1:1'
  const proxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: nowhere, http_proxy: nowhere }
  const check = (env: NodeJS.ProcessEnv) =>
    run(process.execPath, [join(deploy, 'health.mjs')], { env: { ...proxy, ADMIN_PORT: port, ...env } })
  t.match(await check({}), { code: 0, stderr: '' })
  drain()
  t.match(await check({}), { code: 1, stderr: /^\{"status":"unready","reason":"draining"\}\n$/ })
  t.match(await check({ ADMIN_PORT: '1' }), { code: 1, stderr: /^connect ECONNREFUSED 127\.0\.0\.1:1\n$/ })
})
