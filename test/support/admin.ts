// The operator's server of a service, which is no part of the contract.
import { once } from 'node:events'
import pino from 'pino'
import type { Test } from 'tap'
import { openAdmin } from '../../src/plugins/admin.ts'
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

/** Starts one without a service. */
export async function startAdmin(t: Test, databaseUrl = 'postgres://a/b', droppedLines = () => 0) {
  const logger = pino({ level: 'silent' })
  const admin = await openAdmin({ host: '127.0.0.1', port: 0, databaseUrl, logger, droppedLines })
  t.teardown(admin.close)
  return { ...admin, url: `http://127.0.0.1:${admin.address.port}` }
}
