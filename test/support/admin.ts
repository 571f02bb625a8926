// The operator's server of a service, which is no part of the contract.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { startAdminServer } from '../../src/service/admin/admin.ts'
import { Health } from '../../src/service/admin/health.ts'
import { Metrics } from '../../src/service/admin/metrics.ts'
import type { Store } from '../../src/store/store.ts'
import type { spawnCli } from './service.ts'

/** Resolves to its URL once it listens. */
export async function findAdmin(
  service: Pick<ReturnType<typeof spawnCli>, 'child' | 'output'>,
): Promise<string> {
  for (;;) {
    const [, url] = /admin on (\S+)/.exec(service.output().stdout) ?? []
    if (url !== undefined) return url
    await once(service.child.stdout, 'data')
  }
}

/** Sends it a request. */
export async function ask(url: string, options: RequestInit = {}) {
  const response = await fetch(url, options)
  const { status, headers } = response
  return { status, headers, text: await response.text() }
}

/** Starts one without a service, for a store that is ready when `ready` says so; without it nothing is open yet. */
export async function startAdmin(t: Test, ready?: Store['ready']) {
  const health = new Health()
  if (ready) health.serve({ ready })
  const metrics = new Metrics({ health, engine: 'none' })
  const server = await startAdminServer(health, metrics, { host: '127.0.0.1', port: 0 })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, health, metrics }
}
