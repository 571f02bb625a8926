// The operator's server of a service, which is no part of the contract.
import { once } from 'node:events'
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
