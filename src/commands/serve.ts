// serve: runs the service until it is told to stop.
import { once } from 'node:events'
import { type AddressInfo, isIPv6 } from 'node:net'
import closeWithGrace from 'close-with-grace'
import { Command } from 'commander'
import { Metrics } from '../admin/metrics.ts'
import { makeAdminServer } from '../admin/server.ts'
import { buildApp } from '../app.ts'
import { type Config, type Loaded, loadConfig } from '../config/config.ts'
import { addSettingOptions, readFlags } from '../config/options.ts'
import { refuseAddress } from '../config/refuse-address.ts'
import { makeAccessLog } from '../http/access-log.ts'
import type { Access } from '../http/exchange.ts'
import { ConnectionLimit } from '../http/max-connections.ts'
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
  return addSettingOptions(command).action(() => serve(loadConfig(readFlags(command))))
}

async function serve({ config, warnings }: Loaded): Promise<void> {
  const log = await openLog(config)
  const { logger } = log
  for (const warning of warnings) logger.warn(warning)
  const database = describeDatabase(config.databaseUrl)
  const store = await openStore(config.databaseUrl, { logger, name: serviceName })
  const metrics = config.adminPort === undefined ? undefined : new Metrics(store.log)
  const accessLog = makeAccessLog(log.sink, { isIso: config.logTime === 'iso' })
  setInterval(accessLog.flush, logFlushMs).unref()
  const add = logger.isLevelEnabled('info') ? accessLog.add : () => {}
  const connections = new ConnectionLimit({ max: config.maxConnections, logger })
  const report = metrics ? both(add, metrics.count) : add
  const app = await buildApp({ store, config, logger, report, connections })
  const admin = metrics && makeAdminServer(store, metrics)
  const grace = closeWithGrace({ delay: stopMs, logger: false }, async ({ err, signal }) => {
    ignoreSignals()
    /* c8 ignore next: no test can bring about a fault that is not known yet */
    if (err) logger.fatal({ err }, 'the service failed')
    else logger.info({ signal }, 'stopping')
    await app.close()
    admin?.closeAllConnections()
    admin?.close()
    await store.close()
    accessLog.flush()
    await log.end(signal)
  })

  try {
    const { host, port, adminHost, adminPort } = config
    await app.listen({ host, port }).catch(refuseAddress('', { host, port }))
    if (admin) {
      const listening = once(admin, 'listening')
      admin.listen(adminPort, adminHost)
      await listening.catch(refuseAddress('ADMIN_', { host: adminHost, port: adminPort }))
    }
    console.log(`store: ${database}`)
    await announce(app.server.address() as AddressInfo, store, config)
  } catch (error) {
    grace.uninstall()
    await app.close()
    admin?.close()
    await store.close()
    throw error
  }
  if (admin) console.log(`admin on ${origin(admin.address() as AddressInfo)}`)
}

/**
 * Ctrl-C reaches this process twice when npm or the launcher passes it on: the second is no order to drop everything.
 * The end comes in time without it.
 */
function ignoreSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.removeAllListeners(signal).on(signal, () => {})
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
