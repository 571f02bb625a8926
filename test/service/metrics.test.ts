// What Prometheus gets from a service: every number that the alerts and the dashboard speak of, whatever the store does.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { GroupCommit } from '../../src/plants/add/group-commit.ts'
import { showStore } from '../../src/service/admin/admin.ts'
import { Health } from '../../src/service/admin/health.ts'
import { Metrics } from '../../src/service/admin/metrics.ts'
import { openCounted } from '../../src/service/threads/http-worker.ts'
import type { PlantLog } from '../../src/store/engine.ts'
import { ask, findAdmin, startAdmin } from '../support/admin.ts'
import { createDirectory, engines, sharedServer, sqlite } from '../support/engines.ts'
import { openFailing } from '../support/failing-store.ts'
import { assertProblem } from '../support/problem.ts'
import { type Ran, run } from '../support/programs.ts'
import { makeReply } from '../support/replies.ts'
import { request, startService } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'
import { openStore } from '../support/sql-store.ts'
import { recovered } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url))

async function startMetrics(t: Test) {
  const { url: admin, metrics } = await startAdmin(t, async () => {})
  const url = `${admin}/metrics`
  const countReconnects = async () =>
    Number(/^plant_store_database_reconnects_total (\d+)$/m.exec((await ask(url)).text)?.[1])
  return { url, metrics, countReconnects }
}

const noPromtool = skipWithout('promtool')

/** Runs Prometheus's own tool, where it is there. */
async function promtool(t: Test, args: string[], input = ''): Promise<Ran | undefined> {
  if (noPromtool === false) return run('promtool', args, { input })
  t.pass('promtool', { skip: noPromtool })
  return undefined
}

for (const engine of engines)
  test(`${engine.name}: a service counts what it does, and Prometheus's own linter has nothing to say`, async (t) => {
    const DATABASE_URL = await engine.createDatabase(t)
    const service = await startService(
      t,
      { DATABASE_URL, ADMIN_PORT: '0', ...issuerAndCollector },
      createDirectory(t),
    )
    const admin = await findAdmin(service)
    const startMs = performance.now()
    await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } })
    const seconds = (performance.now() - startMs) / 1000
    for (const query of ['limit=1', 'limit=1', 'limit=x']) await request(`${service.url}/plants?${query}`)
    for (const path of ['a', 'b', 'c/plants/d']) await request(`${service.url}/${path}`)
    await request(`${service.url}/plants`, { headers: { authorization: 'Bearer wrong' } })
    for (const method of ['PROPFIND', 'LINK']) await request(`${service.url}/d`, { method })
    const metrics = await ask(`${admin}/metrics`)
    t.equal(metrics.status, 200)
    t.match(metrics.headers.get('content-type'), /^text\/plain/)
    const [post, get] = ['{method="POST",route="/plants",status=', '{method="GET",route="/plants",status=']
    t.match(metrics.text, /_count\{method="other",route="other",status="\d+"\} 2\n/)
    const expected = [
      `http_request_duration_seconds_count${post}"200"} 1`,
      `http_request_duration_seconds_count${get}"200"} 2`,
      `http_request_duration_seconds_count${get}"400"} 1`,
      'http_request_duration_seconds_count{method="GET",route="other",status="404"} 3',
      'plant_store_ready 1',
      // The server of the tests has fsync off.
      `plant_store_unsafe_settings ${engine === sqlite ? 0 : 1}`,
      'plant_store_head_position 1',
      'plant_store_batch_plants_bucket{le="1"} 1',
      'plant_store_batch_plants_sum 1',
      'plant_store_commit_duration_seconds_count{outcome="committed"} 1',
      'plant_store_commit_duration_seconds_count{outcome="failed"} 0',
      'plant_store_plants_waiting 0',
      'plant_store_requests_in_flight 0',
      'plant_store_answer_bytes_in_flight 0',
      'plant_store_page_cache_hits_total 1',
      'plant_store_page_cache_misses_total 1',
      'plant_store_refused_total{reason="auth"} 1',
      'plant_store_refused_total{reason="overload"} 0',
      'plant_store_refused_total{reason="rate"} 0',
      'plant_store_database_reconnects_total 0',
      'plant_store_log_lines_dropped_total 0',
      'plant_store_connections_refused_total 0',
    ]
    const lines = metrics.text.split('\n')
    for (const line of expected) t.ok(lines.includes(line), line)
    const [, sum] = /commit_duration_seconds_sum\{outcome="committed"\} (\S+)/.exec(metrics.text) ?? []
    t.ok(Number(sum) > 0 && Number(sum) < seconds, `${sum} are seconds, of ${seconds} for the request`)
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    const kind = engine.name.toLowerCase()
    t.match(
      metrics.text,
      `plant_store_build_info{version="${version}",node="${process.version}",engine="${kind}"} 1`,
    )
    t.match(metrics.text, /^plant_store_epoch_info\{epoch="[\w-]{11}"\} 1$/m)
    t.match(metrics.text, /^plant_store_connections_open [1-9]/m)
    t.match(metrics.text, /^plant_store_connections_max [1-9]/m)
    t.match(metrics.text, /^plant_store_page_cache_bytes [1-9]/m)
    t.match(
      metrics.text,
      /_duration_seconds_bucket\{le="0.00005",method="GET",route="\/plants",status="200"\}/,
    )
    t.match(metrics.text, /^nodejs_eventloop_lag_p99_seconds /m)
    checkNames(t, metrics.text, engine === sqlite)
    const linted = await promtool(t, ['check', 'metrics'], metrics.text)
    if (linted) t.same(linted, { code: 0, stdout: '', stderr: '' })
  })

/** Both away, as on a closed port: their metrics are there nonetheless. */
const issuerAndCollector = {
  OIDC_ISSUER: 'http://127.0.0.1:9',
  OIDC_AUDIENCE: 'plants',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
}

/** Every metric that the alerts and the dashboard name is in a scrape; without a file there is no disk. */
function checkNames(t: Test, scrape: string, hasFile: boolean): void {
  const there = new Set([...scrape.matchAll(/^([a-z]\w+)/gm)].map(([, name]) => name))
  const expressions = [...readRules().map(({ expr }) => expr), ...readPanels()]
  const named = new Set(expressions.flatMap(namesIn))
  t.ok(named.size > 20)
  for (const name of named)
    t.equal(there.has(name), hasFile || !/^plant_store_disk_/.test(name), `${name} is there`)
}

/** The metrics of an expression; `up` is Prometheus's own. */
function namesIn(expression: string): string[] {
  return [...expression.matchAll(/\b((?:http|plant_store|nodejs|process)_\w+)/g)].map(([, name]) =>
    String(name),
  )
}

type Rule = { alert: string; expr: string; annotations: { runbook_url?: string } }

function readRules(): Rule[] {
  const { groups } = parse(readFileSync(`${deploy}prometheus-rules.yml`, 'utf8')) as {
    groups: { rules: Rule[] }[]
  }
  return groups.flatMap((group) => group.rules)
}

function readPanels(): string[] {
  const { panels } = JSON.parse(readFileSync(`${deploy}grafana-dashboard.json`, 'utf8')) as {
    panels: { targets: { expr: string }[] }[]
  }
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
}

test('every alert uses existing metrics, and has a test', async (t) => {
  const tests = readFileSync(`${deploy}prometheus-rules.test.yml`, 'utf8')
  for (const { alert, expr, annotations } of readRules()) {
    t.ok(namesIn(expr).length > 0 || /\bup\b/.test(expr), alert)
    t.equal(annotations.runbook_url, `docs/operating.md#${alert.toLowerCase()}`)
    t.match(tests, new RegExp(`alertname: ${alert}\\n +exp_alerts:\\n +- exp_labels`), alert)
  }
  for (const expression of readPanels()) t.not(namesIn(expression).length, 0, expression)
})

test("Prometheus's own tool accepts the alerts, and their tests pass", async (t) => {
  for (const args of [
    ['check', 'rules', `${deploy}prometheus-rules.yml`],
    ['test', 'rules', `${deploy}prometheus-rules.test.yml`],
  ]) {
    const ran = await promtool(t, args)
    if (ran) t.equal(ran.code, 0, ran.stdout + ran.stderr)
  }
})

test('values that the store does not give in time are left out, and it is not asked again meanwhile', async (t) => {
  const { url, metrics } = await startMetrics(t)
  const store = await openStore(await sqlite.createDatabase(t), { logger: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  let asked = 0
  let isAway = true
  const away = Promise.withResolvers<never>()
  const head: PlantLog['head'] = () => {
    asked++
    return isAway ? away.promise : store.log.head()
  }
  const unsafeSettings = async () => (isAway ? await away.promise : ['fsync', 'full_page_writes'])
  showStore({ ...store, log: { ...store.log, head }, unsafeSettings }, metrics)
  for (const { status, text } of await Promise.all([ask(url), ask(url), ask(url)])) {
    t.equal(status, 200)
    t.notMatch(text, /^plant_store_(head_position|epoch_info)\b/m)
    t.match(text, /^plant_store_ready/m)
    t.match(text, /^process_cpu_seconds_total/m)
  }
  t.equal(asked, 1)
  isAway = false
  away.reject(new Error('the database went away'))
  const { text } = await ask(url)
  t.match(text, /^plant_store_head_position 0$/m)
  t.match(text, /^plant_store_unsafe_settings 2$/m)
  isAway = true
  t.notMatch(
    (await ask(url)).text,
    /^plant_store_(head_position|epoch_info|unsafe_settings) /m,
    'nor is what it said before shown',
  )
})

test('an error of the metrics reveals no internals', async (t) => {
  const { url, metrics } = await startMetrics(t)
  metrics.gauge('broken', 'It is.', () => {
    throw new Error('secret of the inside')
  })
  const answer = await ask(url)
  assertProblem(t, answer, 500, { typed: false })
  t.notMatch(answer.text, /secret/)
})

test('a service that is not ready says so in its metrics', async (t) => {
  const health = new Health()
  const metrics = new Metrics({ health, engine: 'none' })
  t.match(await metrics.write(), /^plant_store_ready 0$/m)
  health.serve({ ready: async () => {} })
  t.match(await metrics.write(), /^plant_store_ready 1$/m)
})

test('failed commits are counted separately, and all values are in their buckets', async (t) => {
  const { store, faults } = await openFailing(t)
  t.teardown(() => store.close())
  const metrics = new Metrics({ health: new Health(), engine: 'none' })
  let told = Promise.withResolvers<void>()
  let left = 0
  const tell = () => {
    if (--left === 0) told.resolve()
  }
  const commits = new GroupCommit(store.log, tell, metrics)
  const add = async (count: number) => {
    told = Promise.withResolvers<void>()
    left = count
    const entry = { item: '{"name":"a","tag":""}', id: undefined }
    for (let n = 0; n < count; n++)
      commits.append(entry, makeReply({ fail: tell }), performance.now() + 10_000)
    await told.promise
  }
  await add(3)
  await add(4000)
  faults.push('nothing-added')
  await add(1)
  const text = await metrics.write()
  const expected = ['bucket{le="1"} 1', 'bucket{le="2"} 1', 'bucket{le="4"} 2', 'bucket{le="2048"} 2']
  for (const line of [...expected, 'bucket{le="+Inf"} 3', 'sum 4004', 'count 3'])
    t.match(text, `\nplant_store_batch_plants_${line}\n`)
  t.match(text, '_seconds_count{outcome="committed"} 2\n')
  t.match(text, '_seconds_count{outcome="failed"} 1\n')
})

test('a new connection to PostgreSQL after a lost one is counted', async (t) => {
  const server = await sharedServer()
  const [, postgres] = engines
  const url = String(await postgres?.createDatabase(t))
  const { metrics, countReconnects } = await startMetrics(t)
  const store = await openCounted(url, { logger: pino({ level: 'silent' }) }, metrics)
  t.teardown(() => store.close())
  await store.log.head()
  t.equal(await countReconnects(), 0)
  const database = new URL(url).pathname.slice(1)
  await server.query(
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${database}'`,
  )
  await store.log.head()
  t.equal(await countReconnects(), 1)
  await store.log.append([{ item: '{"name":"a","tag":""}', id: undefined }])
  t.equal(await countReconnects(), 2)
})

test('a restarted writer of SQLite is counted', async (t) => {
  const url = await sqlite.createDatabase(t)
  const { metrics, countReconnects } = await startMetrics(t)
  const logger = pino({ level: 'silent' })
  const store = (await openCounted(url, { logger }, metrics)) as Store
  t.teardown(() => store.close())
  t.equal(await countReconnects(), 0)
  // SQLite cannot open that: the writer lets go of the file.
  await t.rejects(store.sql.execute("ATTACH '/nowhere/at/all' AS other"))
  await recovered(store)
  t.equal(await countReconnects(), 1)
})

test('lines of the log that are dropped are counted', async (t) => {
  const service = await startService(t, { ADMIN_PORT: '0' }, createDirectory(t))
  const admin = await findAdmin(service)
  service.child.stderr.pause()
  const dropped = async () =>
    Number(/^plant_store_log_lines_dropped_total (\d+)$/m.exec((await ask(`${admin}/metrics`)).text)?.[1])
  t.equal(await dropped(), 0)
  const long = 'x'.repeat(8000)
  while ((await dropped()) === 0)
    await Promise.all(
      Array.from({ length: 100 }, () => fetch(`${service.url}/${long}`).then((a) => a.text())),
    )
  service.child.stderr.resume()
  await once(service.child.stderr, 'data')
})
