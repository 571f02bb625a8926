// Runs the service: log, admin server, store, app, first token, shutdown. Only this file and app.ts join the parts.
import { readFileSync } from 'node:fs'
import { type AddressInfo, isIPv6, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { attempt } from './attempt.ts'
import { listen } from './listen.ts'
import { openLog } from './log.ts'
import { type Meter, noMeter } from './metrics.ts'
import type { Settings } from './settings.ts'
import { type Cause, finishOnSignal } from './shutdown.ts'
import type { TokenTable } from './store/engine.ts'
import { engineOf, nameDatabase } from './store/engines.ts'
import { introduceTokens } from './tokens/first-token.ts'
import { issuerOf } from './tokens/issuer.ts'
import { makeVerifier } from './tokens/verifier.ts'

/** Maximum duration of a shutdown, after DRAIN_DELAY. */
const stopMs = 10_000
/** Fraction of the file descriptors that clients may use; the rest is for the store, the admin server and the log. */
const connectionShare = 0.45

/**
 * Runs the service until a signal ends the process. If it cannot start, rejects with SettingError, StoreRefused, or
 * StoreUnavailable (while the first token is created).
 */
export async function runService(settings: Settings): Promise<void> {
  const serviceLog = openLog(settings)
  const { logger } = serviceLog
  /** The parts to close at shutdown, in the order in which they were opened; the last one is closed first. */
  const parts: { drain?(): void; close(): PromiseLike<unknown> }[] = []
  const close = async () => {
    for (const part of parts.toReversed()) await part.close()
  }
  let isListening = false
  const finish = async ({ signal, err }: Cause, hurry: AbortSignal) => {
    for (const part of parts) part.drain?.()
    if (err) logger.fatal({ err }, 'the service failed')
    else logger.info({ signal }, 'stopping')
    const delayMs = err || !isListening ? 0 : settings.drainDelayMs
    await sleep(delayMs, undefined, { signal: hurry }).catch(() => {})
    await close()
    await serviceLog.end(signal)
  }
  // Before the database is opened, because that may take a long time.
  finishOnSignal(finish, settings.drainDelayMs + stopMs)
  try {
    // Loaded only if it is enabled, because loading takes a seventh of the startup time.
    const plugin = settings.adminPort === undefined ? undefined : await import('./plugins/admin.ts')
    const admin = await plugin?.openAdmin(settings, serviceLog)
    if (admin) parts.push(admin)
    const meter = admin?.meter ?? noMeter

    const { store, isNew } = await openStore(settings.databaseUrl, logger, meter)
    parts.push(store)
    const app = await buildApp({
      log: store.log,
      settings,
      verify: await openVerifier(store.tokens, settings, { logger, meter }),
      logger,
      meter,
      write: logger.isLevelEnabled('info') ? serviceLog.sink.write : undefined,
      mask: serviceLog.mask,
      count: admin?.count,
      countProblem: admin?.countProblem,
    })
    parts.push(app)

    limitConnections(app.server, settings.maxConnections, meter)
    const url = await listen(app, settings, () => 'listening')
    isListening = true
    admin?.attachStore(store)
    console.log(`store: ${nameDatabase(settings.databaseUrl)}${isNew ? ' (created)' : ''}`)
    const { host, basePath, accessTokens, oidcIssuer, firstTokenFile: file } = settings
    // Clients need no token of the store if the settings have tokens or an issuer.
    if (accessTokens.length === 0 && oidcIssuer === undefined)
      console.log(await introduceTokens(store.tokens, { file, plantsUrl: `${url}${basePath}plants` }))
    if (admin) console.log(`admin on ${admin.origin}`)
    const { port } = app.server.address() as AddressInfo
    console.log(`listening on http://${isIPv6(host) ? `[${host}]` : host}:${port}`)
  } catch (error) {
    await close()
    // Flush the log first, so that the error is the last line.
    await serviceLog.end()
    throw error
  }
}

/** Creates the verifier for tokens of the store, of the settings and of an issuer. */
async function openVerifier(table: TokenTable, settings: Settings, parts: { logger: Logger; meter: Meter }) {
  const issuer = issuerOf(settings)
  // Loaded, with jose, only if an issuer is set.
  const verifyIssued = issuer && (await import('./tokens/issued-tokens.ts')).makeJwtVerifier(issuer, parts)
  return makeVerifier(table, { accessTokens: settings.accessTokens, logger: parts.logger, verifyIssued })
}

/** Opens the store, and counts losses of plants. `isNew`: the store was created. */
async function openStore(databaseUrl: string, logger: Logger, meter: Meter) {
  let [isNew, losses] = [false, 0]
  const help = 'Number of times that the database lost plants that this process had read.'
  meter.counter('plant_store_losses_total', help, () => losses)
  const store = await engineOf(databaseUrl).open(databaseUrl, {
    logger,
    mode: 'write',
    create: true,
    onCreate: () => (isNew = true),
    onLoss: () => losses++,
  })
  return { store, isNew }
}

/** Limits the connections of clients, and counts those that Node closes because of the limit. */
function limitConnections(server: Server, max: number | undefined, meter: Meter): void {
  server.maxConnections = max ?? deriveMaxConnections()
  let drops = 0
  server.on('drop', () => drops++)
  const help = 'Connections that were closed because of MAX_CONNECTIONS.'
  meter.counter('plant_store_connections_dropped_total', help, () => drops)
}

/** Derives the maximum from the file descriptor limit of the process, which only Linux lists; elsewhere 1000. */
function deriveMaxConnections(): number {
  const limits = attempt(() => readFileSync('/proc/self/limits', 'utf8')) ?? ''
  const [, descriptors] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return descriptors === undefined ? 1000 : Math.max(1, Math.floor(Number(descriptors) * connectionShare))
}
