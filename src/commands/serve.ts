// serve: runs the service until it is told to stop.
import type { Server } from 'node:http'
import { type AddressInfo, isIPv6 } from 'node:net'
import closeWithGrace from 'close-with-grace'
import { Command } from 'commander'
import type { Logger } from 'pino'
import { endAtOnce, waitForDrain } from '../admin/drain.ts'
import { Health } from '../admin/health.ts'
import { Metrics } from '../admin/metrics.ts'
import { startAdminServer } from '../admin/server.ts'
import { watchLog } from '../admin/watched-log.ts'
import { buildApp } from '../app.ts'
import { type Config, type Loaded, loadConfig } from '../config/config.ts'
import { addSettingOptions, readFlags } from '../config/options.ts'
import { refuseAddress } from '../config/refuse-address.ts'
import { makeAccessLog } from '../http/access-log.ts'
import type { Access } from '../http/exchange.ts'
import { listen } from '../http/listen.ts'
import { stopMs } from '../limits.ts'
import { openLog } from '../log/open-log.ts'
import { serviceName } from '../status/postgres.ts'
import { describeDatabase } from '../store/describe.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { introduceTokens } from '../tokens/first-token.ts'
import { Tokens } from '../tokens/tokens.ts'

const logFlushMs = 250

const help = `
A flag beats the environment, and the environment beats .env in the working directory; plant-store config shows what is
in force. SIGTERM and SIGINT let what is in flight finish; the exit code is 0 then.`

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Run the service. Operator messages go to stdout, the log to stderr.')
    .addHelpText('after', help)
  return addSettingOptions(command).action(() =>
    serve(loadConfig(readFlags(command)), (command.parent as Command).version() as string),
  )
}

async function serve({ config, warnings }: Loaded, version: string): Promise<void> {
  const started = endAtOnce()
  const log = await openLog(config)
  const { logger } = log
  for (const warning of warnings) logger.warn(warning)
  const database = describeDatabase(config.databaseUrl)
  const health = new Health()
  const engine = config.databaseUrl.startsWith('file:') ? 'sqlite' : 'postgresql'
  const metrics = config.adminPort === undefined ? undefined : new Metrics({ health, version, engine })
  metrics?.counter(
    'plant_store_log_lines_dropped_total',
    'Log lines that nobody read in time.',
    log.droppedLines,
  )
  const admin = metrics && (await startAdmin(config, health, metrics))
  const store = await open(config.databaseUrl, logger, metrics).catch((error) => {
    stopAdmin(admin)
    throw error
  })
  const accessLog = makeAccessLog(log.sink, { isIso: config.logTime === 'iso', mask: log.mask })
  setInterval(accessLog.flush, logFlushMs).unref()
  const add = logger.isLevelEnabled('info') ? accessLog.add : () => {}
  const app = await buildApp({
    store,
    config,
    logger,
    report: metrics ? both(add, metrics.count) : add,
    ...(metrics && { meter: metrics }),
    isDraining: () => health.isDraining,
  })
  const delay = config.drainDelayMs + stopMs
  const grace = closeWithGrace({ delay, logger: false }, async ({ err, signal }) => {
    health.drain()
    /* c8 ignore next: no test can bring about a fault that is not known yet */
    if (err) logger.fatal({ err }, 'the service failed')
    else logger.info({ signal }, 'stopping')
    /* c8 ignore next: the same fault */
    await waitForDrain(err ? 0 : config.drainDelayMs)
    await app.close()
    stopAdmin(admin)
    await store.close()
    accessLog.flush()
    await log.end(signal)
  })
  started()

  try {
    const { host, port } = config
    await listen(app, { host, port }).catch(refuseAddress('', { host, port }))
    health.serve(store)
    console.log(`store: ${database}`)
    await announce(app.server.address() as AddressInfo, store, config)
    if (admin) console.log(`admin on ${origin(admin.address() as AddressInfo)}`)
  } catch (error) {
    grace.uninstall()
    await app.close()
    stopAdmin(admin)
    await store.close()
    throw error
  }
}

/** Before the store is opened, which may take its time: until then the answer of `/readyz` is that it is starting. */
async function startAdmin({ adminHost: host, adminPort: port }: Config, health: Health, metrics: Metrics) {
  return await startAdminServer(health, metrics, { host, port }).catch(
    refuseAddress('ADMIN_', { host, port }),
  )
}

function stopAdmin(admin: Server | undefined): void {
  admin?.closeAllConnections()
  admin?.close()
}

async function open(url: string, logger: Logger, metrics: Metrics | undefined): Promise<Store> {
  if (!metrics) return await openStore(url, { logger, name: serviceName })
  const store = await openStore(url, { logger, name: serviceName, reconnected: metrics.countReconnect })
  return { ...store, log: watchLog(store.log, metrics.registry) }
}

function both(first: (access: Access) => void, second: (access: Access) => void) {
  return (access: Access) => {
    first(access)
    second(access)
  }
}

async function announce(address: AddressInfo, store: Store, config: Config): Promise<void> {
  if (config.accessTokens.length === 0) {
    const plantsUrl = `${origin(loopback(address))}${config.basePath}plants`
    console.log(await introduceTokens(new Tokens(store.sql), { file: config.firstTokenFile, plantsUrl }))
  }
  console.log(`listening on ${origin({ ...address, address: config.host })}`)
}

/** An address that means all of a machine's is reached through its loopback one. */
function loopback(address: AddressInfo): AddressInfo {
  const all: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  return { ...address, address: all[address.address] ?? address.address }
}

function origin({ address, port }: AddressInfo): string {
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`
}
