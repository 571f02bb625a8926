// The service in this process, as server.ts joins it: on a real store and a free port.
import type { AddressInfo } from 'node:net'
import pino, { type Logger } from 'pino'
import type { Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { type Meter, noMeter } from '../../src/metrics.ts'
import { loadSettings } from '../../src/settings.ts'
import type { Store } from '../../src/store/engine.ts'
import { acceptIssuer } from '../../src/tokens/issued-tokens.ts'
import { issuerOf } from '../../src/tokens/issuer.ts'
import type { IssuerKeysOptions } from '../../src/tokens/issuer-keys.ts'
import { type NewToken, Tokens } from '../../src/tokens/tokens.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { sqlite } from '../support/engines.ts'
import { openStore } from '../support/stores.ts'

/** One of ACCESS_TOKENS. */
export const token = 'a-token-for-tests'
export const plant = { name: 'Alder', tag: 'Alnus' }
export const silent = pino({ level: 'silent' })
export const idOf = (text: string) => text.slice(6, 14)

/** `limits`: shorter ones for the keys of an issuer. `change`: replaces parts of the store. */
type Options = {
  database?: string
  env?: NodeJS.ProcessEnv
  logger?: Logger
  meter?: Meter
  limits?: Partial<IssuerKeysOptions>
  change?: (store: Store) => Partial<Store>
}

export async function start(t: Test, options: Options = {}) {
  const { database = await sqlite.createDatabase(t), env = {}, logger = silent, meter = noMeter } = options
  const { settings } = loadSettings({}, { ACCESS_TOKENS: token, ...env })
  const sqlStore = await openStore(database, { logger })
  const store: Store = Object.assign(Object.create(sqlStore), options.change?.(sqlStore))
  const tokens = new Tokens(store.tokens)
  const issuer = issuerOf(settings)
  const verifyIssued = issuer && acceptIssuer(issuer, { logger, meter, ...options.limits })
  const verify = makeVerifier(tokens, { accessTokens: settings.accessTokens, logger, verifyIssued })
  const app = await buildApp({
    log: store.log,
    fault: () => undefined,
    settings,
    verify,
    logger,
    meter,
    mask: String,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await app.close()
    await sqlStore.close()
  })
  const { port } = app.server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const create = async (token: NewToken) => (await tokens.create(token)) as string
  const list = (text: string | undefined, query = '') => ask(`${url}/plants${query}`, text)
  const add = (text: string | undefined) => ask(`${url}/plants`, text, plant)
  return { url, port, app, store, sql: sqlStore.sql, tokens, create, list, add }
}

export async function ask(url: string, text: string | undefined, body?: object) {
  const answer = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...(text !== undefined && { authorization: `Bearer ${text}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
