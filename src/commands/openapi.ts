// openapi: writes the contract of the service that the settings describe, as its /openapi.yaml has it.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import pino from 'pino'
import { buildApp } from '../app.ts'
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
      const app = await buildIdleApp()
      await app.ready()
      const text = json ? `${JSON.stringify(app.swagger(), null, 2)}\n` : app.swagger({ yaml: true })
      if (output === '-') process.stdout.write(text)
      else await writeNewFile(output, { replace }, async (path) => writeFileSync(path, text))
    })
}

/** Builds the app of the service. Without a store it answers no request of a client. */
function buildIdleApp() {
  return buildApp({
    store: {} as Store,
    settings: loadSettings().settings,
    verify: () => undefined,
    logger: pino({ level: 'silent' }),
    meter: noMeter,
    mask: String,
  })
}
