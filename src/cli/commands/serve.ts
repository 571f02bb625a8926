// serve: runs the service until it is told to stop.
import { type AddressInfo, isIPv6 } from 'node:net'
import type { Command } from 'commander'
import { type Config, describeDatabase, type Loaded, loadConfig } from '../../config/load-config.ts'
import { refuseAddress } from '../../config/refuse-address.ts'
import type { Flags } from '../../config/settings.ts'
import { stopMs } from '../../limits.ts'
import { openLog } from '../../logging/open-log.ts'
import { Health } from '../../service/admin/health.ts'
import { buildService } from '../../service/service.ts'
import { type Cause, Shutdown } from '../../service/shutdown.ts'
import { openCounted } from '../../service/threads/http-worker.ts'
import type { Store } from '../../store/engine.ts'
import { introduceTokens } from '../../tokens/first-token.ts'
import { Tokens } from '../../tokens/tokens.ts'
import { addSettingOptions } from '../setting-options.ts'

const help = `
A flag overrides the environment, and the environment overrides .env in the working directory; plant-store config shows
the effective settings. SIGTERM, SIGINT and SIGHUP let requests in flight finish; the exit code is 0 then.`

export function define(command: Command): void {
  addSettingOptions(command.addHelpText('after', help)).action((flags: Flags) => serve(loadConfig(flags)))
}

async function serve({ config, warnings }: Loaded): Promise<void> {
  const log = await openLog(config)
  const { logger, droppedLines } = log
  for (const warning of warnings) logger.warn(warning)
  const shutdown = new Shutdown()
  let close = async () => {}
  try {
    const database = describeDatabase(config.databaseUrl)
    const health = new Health()
    const { openAdmin } = config.adminPort === undefined ? {} : await import('../../service/admin/admin.ts')
    const admin = await openAdmin?.({ config, logger, health, droppedLines })
    close = async () => await admin?.close()
    const store = await openCounted(config.databaseUrl, { logger }, admin?.metrics)
    admin?.show(store)
    const service = await buildService({ config, store, log, metrics: admin?.metrics })
    close = async () => {
      await service.close()
      await admin?.close()
    }
    const finish = async ({ err, signal }: Cause) => {
      health.drain()
      service.drain()
      /* c8 ignore next: no test can bring about a fault that is not known yet */
      if (err) logger.fatal({ err }, 'the service failed')
      else logger.info({ signal }, 'stopping')
      /* c8 ignore next: the same fault */
      await shutdown.delay(err ? 0 : config.drainDelayMs)
      await close()
      await log.end(signal)
    }
    shutdown.arm({ finish, limitMs: config.drainDelayMs + stopMs })

    const address = await service.listen().catch(refuseAddress('', config))
    health.serve(store, service.threads)
    console.log(`store: ${database}`)
    await announce(address, store, config)
    if (admin) console.log(`admin on ${origin(admin.address)}`)
  } catch (error) {
    shutdown.disarm()
    await close()
    // Write out the log first, so that the error comes last.
    await log.end()
    throw error
  }
}

async function announce(address: AddressInfo, store: Store, config: Config): Promise<void> {
  if (config.accessTokens.length === 0 && config.oidcIssuer === undefined) {
    const plantsUrl = `${origin(loopback(address))}${config.basePath}plants`
    console.log(await introduceTokens(new Tokens(store.tokens), { file: config.firstTokenFile, plantsUrl }))
  }
  console.log(`listening on ${origin({ ...address, address: config.host })}`)
}

/** The address to show: a wildcard address is shown as the loopback one, which can be opened. */
function loopback(address: AddressInfo): AddressInfo {
  const all: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  return { ...address, address: all[address.address] ?? address.address }
}

function origin({ address, port }: AddressInfo): string {
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`
}
