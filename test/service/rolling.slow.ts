// A rolling restart of two replicas behind HAProxy, which asks /readyz every second and retries nothing: with DRAIN_DELAY
// no request fails.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createDirectory, engines } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { spawnProgram } from '../support/processes.ts'
import { ask, type Service, startService, token } from '../support/service.ts'
import { findProgram, skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'

const clients = 16
const skip = skipWithout('haproxy')

type Replica = { name: string; port: number; adminPort: number; env: NodeJS.ProcessEnv }
type Proxy = { url: string; stats: string }

function configure(front: number, stats: number, replicas: Replica[]): string {
  return `
global
  maxconn 1000
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend plants
  bind 127.0.0.1:${front}
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  default-server check inter 1s
${replicas.map(({ name, port, adminPort }) => `  server ${name} 127.0.0.1:${port} port ${adminPort}\n`).join('')}
frontend stats
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
`
}

async function startProxy(t: Test, replicas: Replica[]): Promise<Proxy> {
  const [front, stats] = (await findPorts(2)) as [number, number]
  const file = join(createDirectory(t), 'haproxy.cfg')
  writeFileSync(file, configure(front, stats, replicas))
  spawnProgram(t, findProgram('haproxy') as string, ['-db', '-f', file])
  const proxy = { url: `http://127.0.0.1:${front}`, stats: `http://127.0.0.1:${stats}/;csv` }
  for (const { name } of replicas) await waitUntilUp(proxy, name)
  return proxy
}

/** Resolves when HAProxy has found a replica ready. */
async function waitUntilUp({ stats }: Proxy, name: string): Promise<void> {
  const up = new RegExp(`^replicas,${name},.*,UP,`, 'm')
  const isUp = () => ask(stats).then(({ text }) => up.test(text))
  await until(() => isUp().catch(() => false))
}

/** Restarts the replicas one after the other, as an orchestrator does. */
async function restartAll(t: Test, proxy: Proxy, running: [Replica, Service][]): Promise<void> {
  for (const [{ name, env }, service] of running) {
    service.child.kill('SIGTERM')
    t.match(await service.ended, { code: 0, signal: null })
    await startService(t, env)
    await waitUntilUp(proxy, name)
  }
}

/** Adds and lists plants through the proxy until `isOver`. Resolves to the number of requests by outcome. */
async function sendRequests({ url }: Proxy, isOver: (count: number) => boolean) {
  const counts = new Map<string, number>()
  let count = 0
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const add = { method: 'POST', headers, body: '{"name":"a","tag":""}' }
  const client = async () => {
    while (!isOver(count)) {
      const isAddition = count++ % 2 === 0
      const answer = fetch(`${url}/plants${isAddition ? '' : '?limit=1'}`, isAddition ? add : { headers })
      const came = await answer.then(
        async (one) => `${one.status} ${one.ok && (await one.text()) === '' ? 'empty' : ''}`.trim(),
        (error) => String(error.cause ?? error),
      )
      counts.set(came, (counts.get(came) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return counts
}

/** Resolves to the number of requests that failed during a rolling restart. */
async function countFailures(t: Test, drainDelay: string, requests: number): Promise<number> {
  const DATABASE_URL = await (engines[1] as (typeof engines)[0]).createDatabase(t)
  const ports = (await findPorts(4)) as [number, number, number, number]
  const replicas = ['a', 'b'].map((name, n): Replica => {
    const [port, adminPort] = ports.slice(2 * n) as [number, number]
    const env = { DATABASE_URL, PORT: `${port}`, ADMIN_PORT: `${adminPort}`, DRAIN_DELAY: drainDelay }
    return { name, port, adminPort, env }
  })
  const running: [Replica, Service][] = []
  for (const replica of replicas) running.push([replica, await startService(t, replica.env)])
  const proxy = await startProxy(t, replicas)
  let isRestarted = false
  const restarted = restartAll(t, proxy, running).finally(() => (isRestarted = true))
  const counts = await sendRequests(proxy, (count) => isRestarted && count >= requests)
  await restarted
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  t.comment(`DRAIN_DELAY=${drainDelay}: ${total} requests: ${JSON.stringify(Object.fromEntries(counts))}`)
  t.ok(total >= requests)
  return total - (counts.get('200') ?? 0)
}

test('a rolling restart with DRAIN_DELAY=5 fails no request', { skip, timeout: 300_000 }, async (t) => {
  t.equal(await countFailures(t, '5', 20_000), 0)
})

test('a rolling restart without DRAIN_DELAY fails some', { skip, timeout: 300_000 }, async (t) => {
  t.not(await countFailures(t, '0', 2000), 0)
})
