// The operator's server of a service, which is no part of the contract.
import { once } from 'node:events'
import pino from 'pino'
import type { Test } from 'tap'
import { readConfig } from '../../src/config/load-config.ts'
import { openAdmin } from '../../src/service/admin/admin.ts'
import { Health } from '../../src/service/admin/health.ts'
import type { spawnCli } from './service.ts'
import type { Store } from './sql-store.ts'

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
export async function startAdmin(t: Test, ready?: Store['ready'], env: NodeJS.ProcessEnv = {}) {
  const health = new Health()
  if (ready) health.serve({ ready })
  const config = readConfig({ ADMIN_PORT: '0', ...env })
  const logger = pino({ level: 'silent' })
  const { metrics, address, close } = await openAdmin({ config, logger, health, droppedLines: () => 0 })
  t.teardown(close)
  return { url: `http://127.0.0.1:${address.port}`, port: address.port, health, metrics }
}
