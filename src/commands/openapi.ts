// openapi: prints the contract for the current BASE_PATH, without the security scheme of an issuer.
import type { Command } from 'commander'
import { buildApp } from '../app.ts'
import { noMeter } from '../metrics.ts'
import { loadSetting, loadSettings } from '../settings.ts'
import type { PlantLog } from '../store/engine.ts'
import { silent } from '../store/engines.ts'

export function define(command: Command): void {
  command.option('--json', 'print JSON instead of YAML').action(printContract)
}

/** Prints the contract of an app without a store, which serves no requests. */
async function printContract({ json }: { json?: true }): Promise<void> {
  const app = await buildApp({
    log: {} as PlantLog,
    settings: { ...loadSettings({}, {}, {}).settings, basePath: loadSetting('basePath') },
    verify: () => undefined,
    logger: silent,
    meter: noMeter,
    mask: String,
  })
  process.stdout.write(json ? `${JSON.stringify(app.swagger(), null, 2)}\n` : app.swagger({ yaml: true }))
  await app.close()
}
