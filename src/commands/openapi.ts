// openapi: prints the contract of the app for the current BASE_PATH, without the security scheme of an issuer.
import type { Command } from 'commander'
import { buildApp } from '../app.ts'
import { silent } from '../cli/console.ts'
import { noMeter } from '../metrics.ts'
import { loadSetting, loadSettings } from '../settings.ts'
import { StoreUnavailable } from '../store/errors.ts'

export function define(command: Command): void {
  command.option('--json', 'as JSON instead of YAML').action(printContract)
}

/** Prints the contract of an app without a store. */
async function printContract({ json }: { json?: true }): Promise<void> {
  const { settings } = loadSettings({}, {}, {})
  const refuse = async () => {
    throw new StoreUnavailable('unread', 'this app describes itself only')
  }
  const app = await buildApp({
    log: { append: refuse, head: refuse, read: refuse },
    settings: { ...settings, basePath: loadSetting('basePath') },
    verify: () => undefined,
    logger: silent,
    meter: noMeter,
    mask: String,
  })
  await app.ready()
  process.stdout.write(json ? `${JSON.stringify(app.swagger(), null, 2)}\n` : app.swagger({ yaml: true }))
  await app.close()
}
