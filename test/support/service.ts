// Starts a service: as an app in this process, or as a separate process through the command line.
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { type AppOptions, buildApp } from '../../src/app.ts'
import { noMeter } from '../../src/metrics.ts'
import { loadSettings } from '../../src/settings.ts'
import { makeJwtVerifier } from '../../src/tokens/issued-tokens.ts'
import { issuerOf } from '../../src/tokens/issuer.ts'
import type { IssuerKeysOptions } from '../../src/tokens/issuer-keys.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { spawnCli } from './commands.ts'
import { findContractFaults } from './contract.ts'
import { sqlite } from './engines.ts'
import { openStore, type Store, silent } from './stores.ts'
import { watchAnswers } from './watch.ts'

export const token = 'a-token-for-tests'

export type Running = { url: string; port: number; app: FastifyInstance; store: Store }

export type StartOptions = Partial<Omit<AppOptions, 'settings' | 'logger'>> & {
  logger?: typeof silent
  store?: Store
  env?: NodeJS.ProcessEnv
  limits?: Partial<IssuerKeysOptions> | undefined
}

/**
 * Starts an app on the database at a URL, or on a new one of SQLite, with the settings of `env`. It accepts the bearer
 * `token`. App and store close when the test ends. A response that contradicts the contract fails the test. `limits`: of
 * the keys of an issuer.
 */
export async function startApp(
  t: Test,
  databaseUrl?: string,
  { env = {}, store: given, limits, ...options }: StartOptions = {},
): Promise<Running> {
  const { logger = silent, meter = noMeter } = options
  const url = given ? '' : (databaseUrl ?? (await sqlite.createDatabase(t)))
  const store = given ?? (await openStore(url, { logger, mode: 'write', create: true }))
  const { settings } = loadSettings({}, { ACCESS_TOKENS: token, ...env })
  const { accessTokens } = settings
  const issuer = issuerOf(settings)
  const verifyIssued = issuer && makeJwtVerifier(issuer, { logger, meter, ...limits })
  const verify = makeVerifier(store.tokens, { accessTokens, logger, verifyIssued })
  const own = { meter, mask: String, log: store.log, verify }
  const app = await buildApp({ ...own, ...options, settings, logger })
  watchAnswers(app.server, settings.basePath, (fault) => t.fail(fault))
  t.teardown(async () => {
    await app.close()
    await store.close()
  })
  await app.listen({ host: '127.0.0.1', port: 0, listenTextResolver: () => 'listening' })
  const { port } = app.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, app: app as unknown as FastifyInstance, store }
}

export type Answer = { status: number; headers: Headers; text: string; json: () => unknown }

/**
 * Sends a request with the test token; a `body` that is not a string is sent as JSON. Rejects if the response
 * contradicts the contract.
 */
export async function request(
  url: string,
  options: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { body, headers = {}, method = body === undefined ? 'GET' : 'POST' } = options
  const response = await fetch(url, {
    method,
    redirect: 'manual',
    headers: {
      authorization: `Bearer ${token}`,
      // Most tests do not depend on whether a page is already compressed.
      'accept-encoding': 'identity',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const { status, headers: received } = response
  // A service with a base path has nothing at the paths of the contract.
  const path = status === 404 ? '' : new URL(url).pathname
  const faults = findContractFaults({ method, path, status, headers: received, body: text })
  if (faults.length > 0) throw new Error(faults.join('; '))
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
}

export type Service = Awaited<ReturnType<typeof startService>>

/** Starts `plant-store serve` on a free port and waits until it is ready. It accepts the bearer `token`. */
export async function startService(t: Test, env: NodeJS.ProcessEnv, cwd?: string) {
  const running = spawnCli(t, ['serve'], { PORT: '0', ACCESS_TOKENS: token, ...env }, { cwd })
  return { ...running, url: await running.listening() }
}

/** Resolves to the URL of the admin server once it listens. */
export function findAdmin({ prints }: Pick<Service, 'prints'>): Promise<string> {
  return prints(/admin on (\S+)/)
}

/** Sends a request to the admin server. */
export async function ask(url: string, options: RequestInit = {}) {
  const response = await fetch(url, options)
  const { status, headers } = response
  return { status, headers, text: await response.text() }
}
