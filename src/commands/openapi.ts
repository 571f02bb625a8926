// openapi: prints the contract of the app for the BASE_PATH in force, without the security scheme of an issuer.
import type { Command } from 'commander'
import { buildApp } from '../app.ts'
import { silent } from '../cli/console.ts'
import { noMeter } from '../metrics.ts'
import { loadSetting, loadSettings } from '../settings.ts'
import { StoreUnavailable } from '../store/errors.ts'

export function define(command: Command): void {
  command.option('--json', 'as JSON instead of YAML').action(async ({ json }: { json?: true }) => {
    process.stdout.write(await makeContract(loadSetting('basePath'), json))
  })
}

/** Makes the contract of an app without a store. */
async function makeContract(basePath: string, asJson = false): Promise<string> {
  const { settings } = loadSettings({}, {})
  const refuse = async () => {
    throw new StoreUnavailable('unread', 'this app describes itself only')
  }
  const app = await buildApp({
    log: { append: refuse, head: refuse, read: refuse },
    settings: { ...settings, basePath },
    verify: () => undefined,
    logger: silent,
    meter: noMeter,
    mask: String,
  })
  await app.ready()
  const text = asJson ? `${JSON.stringify(app.swagger(), null, 2)}\n` : app.swagger({ yaml: true })
  await app.close()
  return text
}
