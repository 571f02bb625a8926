// Hostile traffic: through each proxy of deploy/proxies, a well-behaved client waits at most a second, and the memory
// of the service grows by at most 256 MiB. Without a proxy, the service recovers after the traffic.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { noteProcess } from '../support/processes.ts'
import { token } from '../support/service.ts'
import { fillLarge, open } from '../support/stores.ts'
import { type Address, ask, type Behind, host, proxies, startBehind } from './proxies.ts'
import { type Kind, kinds } from './traffic.ts'

const forMs = 10_000
const pauseMs = 50
const maxWaitMs = 1000
const maxGrowthBytes = 256 * 2 ** 20
/**
 * Node first handles everything that it has read: some thousand pipelined requests from each of 200 connections. A bare
 * `node:http` server takes 3 to 4 s for them.
 */
const maxPipelinedMs = 10_000
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

/** Resident bytes of a process (proc_pid_status(5)). */
function residentBytes(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}

/** Sends traffic from another process. Resolves when it has ended. */
async function send(t: Test, kind: Kind, to: Address): Promise<void> {
  const child = fork(new URL('./traffic.ts', import.meta.url))
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  child.send({ kind, ...to, host, forMs })
  await once(child, 'exit')
}

/** Lists and adds on two new connections from another address. Resolves to the longest wait. */
async function useOnce(t: Test, to: Address): Promise<number> {
  const startMs = performance.now()
  const listed = await ask('/plants?limit=1', { ...to, headers, from: '127.0.0.3' })
  const listedMs = performance.now()
  const added = await ask('/plants', { ...to, headers, from: '127.0.0.3', body: '{"name":"a","tag":""}' })
  if (listed.status !== 200 || added.status !== 200) t.fail(`answered ${listed.status} and ${added.status}`)
  return Math.max(listedMs - startMs, performance.now() - listedMs)
}

/** Uses the service until the traffic has ended. */
async function useBeside(t: Test, pid: number, to: Address, traffic: Promise<void>) {
  let [waitMs, peakBytes, isOver] = [0, 0, false]
  const ended = traffic.then(() => (isOver = true))
  while (!isOver) {
    waitMs = Math.max(waitMs, await useOnce(t, to))
    peakBytes = Math.max(peakBytes, residentBytes(pid))
    await sleep(pauseMs)
  }
  await ended
  return { waitMs, peakBytes }
}

async function start(t: Test): Promise<Behind & { pid: number }> {
  const service = await startBehind(t, { DATABASE_URL: await sqlite.createDatabase(t), LOG_LEVEL: 'error' })
  return { ...service, pid: service.child.pid as number }
}

for (const proxy of Object.values(proxies))
  test(`${proxy.name}: a good client is served beside hostile traffic`, { skip: proxy.skip }, async (t) => {
    const service = await start(t)
    const to = await proxy.start(t, service)
    await useOnce(t, to)
    for (const kind of kinds) {
      const before = residentBytes(service.pid)
      const { waitMs, peakBytes } = await useBeside(t, service.pid, to, send(t, kind, to))
      const grownBytes = peakBytes - before
      t.comment(`${kind}: waited ${Math.round(waitMs)} ms, + ${Math.round(grownBytes / 2 ** 20)} MiB`)
      t.ok(waitMs <= maxWaitMs, `${kind}: the good client waits ${Math.round(waitMs)} ms`)
      t.ok(grownBytes <= maxGrowthBytes, `${kind}: the memory of the service is bounded`)
    }
  })

/** Caddy before 2.7.6 ends a list that was cut as if it were complete (github.com/caddyserver/caddy/issues/5952). */
const oldCaddy = () =>
  /^v?2\.([0-6]|7\.[0-5])\b/.test(execFileSync('caddy', ['version'], { encoding: 'utf8' }))

for (const { name, skip, start: startProxy } of Object.values(proxies))
  test(`${name}: a client detects that a list was truncated`, { skip }, async (t) => {
    if (name === 'caddy' && oldCaddy()) return t.pass('', { skip: 'it needs Caddy 2.7.6' })
    const DATABASE_URL = await sqlite.createDatabase(t)
    await fillLarge(await open(t, DATABASE_URL))
    const service = await startBehind(t, { DATABASE_URL })
    const midway = () => {
      service.child.kill('SIGKILL')
      return service.ended
    }
    const asking = ask('/plants', { ...(await startProxy(t, service)), headers, midway })
    await t.rejects(asking, { code: 'ECONNRESET' })
  })

const skip = process.platform !== 'linux' && 'it needs 127.0.0.2'
test('without a proxy the service recovers when the traffic ends', { skip }, async (t) => {
  const service = await start(t)
  for (const kind of kinds) {
    await send(t, kind, { port: service.port })
    const waitMs = await useOnce(t, { port: service.port })
    t.comment(
      `${kind}: waited ${Math.round(waitMs)} ms, ${Math.round(residentBytes(service.pid) / 2 ** 20)} MiB`,
    )
    const limitMs = kind === 'pipelining' ? maxPipelinedMs : maxWaitMs
    t.ok(waitMs <= limitMs, `${kind}: answers ${Math.round(waitMs)} ms after the traffic`)
  }
})
