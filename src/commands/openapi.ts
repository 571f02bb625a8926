// openapi: writes the contract for the BASE_PATH in force, without the security scheme of an issuer.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { buildApp } from '../app.ts'
import { silent } from '../cli/console.ts'
import { writeNewFile } from '../cli/new-file.ts'
import { noMeter } from '../metrics.ts'
import { loadSettings } from '../settings.ts'
import type { Store } from '../store/engine.ts'

type Options = { json?: true; output: string; force?: true }

export function define(command: Command): void {
  command
    .option('--json', 'as JSON instead of YAML')
    .option('-o, --output <file>', 'write to a file; - is stdout', '-')
    .option('--force', 'replace the file if it exists')
    .action(async ({ json, output, force: replace }: Options) => {
      const text = await writeContract(json)
      if (output === '-') process.stdout.write(text)
      else await writeNewFile(output, { replace }, async (path) => writeFileSync(path, text))
    })
}

/** Asks the app of the service for its contract. No request reaches it, so it needs no store. */
async function writeContract(asJson: boolean | undefined): Promise<string> {
  // Without what an issuer and traces would add.
  const { oidcIssuer: _, otlpEndpoint: __, ...settings } = loadSettings().settings
  const app = await buildApp({
    settings,
    store: { log: {} } as Store,
    verify: () => undefined,
    logger: silent,
    meter: noMeter,
    write: undefined,
    mask: String,
    count: undefined,
  })
  await app.ready()
  const text = asJson ? `${JSON.stringify(app.swagger(), null, 2)}\n` : app.swagger({ yaml: true })
  await app.close()
  return text
}
