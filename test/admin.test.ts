// The operator's server: liveness, readiness, metrics, on a port of its own.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import pino from 'pino'
import { type Test, test } from 'tap'
import { Metrics } from '../src/admin/metrics.ts'
import { makeAdminServer } from '../src/admin/server.ts'
import { openStore } from '../src/store/open.ts'
import type { Store } from '../src/store/store.ts'
import { createDirectory, engines, sqlite } from './support/engines.ts'
import { assertProblem } from './support/problem.ts'
import { request, startService } from './support/service.ts'

const logger = pino({ level: 'silent' })

async function startAdmin(t: Test, store: Store): Promise<string> {
  const server = makeAdminServer(store, new Metrics(store.log)).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const engine of engines)
  test(`${engine.name}: a service says that it lives, that it is ready, and what it has done`, async (t) => {
    const DATABASE_URL = await engine.createDatabase(t)
    const service = await startService(t, { DATABASE_URL, ADMIN_PORT: '0' }, createDirectory(t))
    while (!/admin on/.test(service.output().stdout)) await once(service.child.stdout, 'data')
    const [, url] = /admin on (\S+)/.exec(service.output().stdout) ?? []
    await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } })
    await request(`${service.url}/plants?limit=1`)
    await request(`${service.url}/plants?limit=x`)
    for (const path of ['a', 'b', 'c/plants/d']) await request(`${service.url}/${path}`)
    const headers = { authorization: '' }
    for (const path of ['livez', 'readyz', 'readyz?verbose']) {
      const answer = await request(`${url}/${path}`, { headers })
      t.match(answer, { status: 200, text: 'ok\n' }, path)
      t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    }
    const metrics = await request(`${url}/metrics`, { headers })
    t.equal(metrics.status, 200)
    t.match(metrics.headers.get('content-type'), /^text\/plain/)
    const counts = [
      'plants_total 1',
      'http_request_duration_seconds_count{method="POST",route="/plants",status="200"} 1',
      'http_request_duration_seconds_count{method="GET",route="/plants",status="200"} 1',
      'http_request_duration_seconds_count{method="GET",route="/plants",status="400"} 1',
      'http_request_duration_seconds_count{method="GET",route="other",status="404"} 3',
    ]
    for (const line of counts) t.ok(metrics.text.split('\n').includes(line), line)
    t.match(metrics.text, /^process_cpu_seconds_total/m)
    assertProblem(t, await request(`${service.url}/metrics`), 404)
    assertProblem(t, await request(`${url}/plants`), 404)
    service.child.kill('SIGTERM')
    t.match(await service.ended, { code: 0 })
  })

test('while the store cannot be used the service lives, and is not ready', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  t.teardown(() => store.close())
  const broken = () => Promise.reject(new Error('secret of the inside'))
  const url = await startAdmin(t, { ...store, ready: broken, log: { ...store.log, head: broken } })
  t.equal((await request(`${url}/livez`)).status, 200)
  for (const path of ['readyz', 'metrics']) {
    const answer = await request(`${url}/${path}`)
    assertProblem(t, answer, 503, { typed: false })
    t.notMatch(answer.text, /secret/)
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
})

test('a store that does not answer is not waited for', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  t.teardown(() => store.close())
  const url = await startAdmin(t, { ...store, ready: () => new Promise(() => {}) })
  assertProblem(t, await request(`${url}/readyz`), 503, { typed: false })
})
