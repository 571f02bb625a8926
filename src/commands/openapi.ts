// openapi: writes the contract of the app for the BASE_PATH in force, without the security scheme of an issuer.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { buildApp } from '../app.ts'
import { silent } from '../cli/console.ts'
import { writeNewFile } from '../cli/new-file.ts'
import { noMeter } from '../metrics.ts'
import { loadSetting, loadSettings } from '../settings.ts'
import { StoreUnavailable } from '../store/errors.ts'

type Options = { json?: true; output: string; force?: true }

export function define(command: Command): void {
  command
    .option('--json', 'as JSON instead of YAML')
    .option('-o, --output <file>', 'write to a file; - is stdout', '-')
    .option('--force', 'replace the file if it exists')
    .action(async ({ json, output, force: replace }: Options) => {
      const text = await writeContract(loadSetting('basePath'), json)
      if (output === '-') process.stdout.write(text)
      else await writeNewFile(output, { replace }, async (path) => writeFileSync(path, text))
    })
}

/** Writes the contract of an app without a store. */
export async function writeContract(basePath: string, asJson = false): Promise<string> {
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
