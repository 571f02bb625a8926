// openapi: writes the contract, as the service itself serves it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import pino from 'pino'
import { buildApp } from '../app.ts'
import { readConfig } from '../config/config.ts'
import { toYaml } from '../http/document.ts'
import { openStore } from '../store/open.ts'

export function openapiCommand(): Command {
  return new Command('openapi')
    .description('Write the OpenAPI document.')
    .option('--json', 'as JSON instead of YAML')
    .option('-o, --output <file>', 'into a file instead of standard output')
    .action(async ({ json, output }: { json?: true; output?: string }) => {
      const text = await writeDocument(json ? 'json' : 'yaml')
      if (output === undefined) process.stdout.write(text)
      else writeFileSync(output, text)
    })
}

async function writeDocument(format: 'json' | 'yaml'): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  const logger = pino({ level: 'silent' })
  const store = await openStore(pathToFileURL(join(directory, 'empty.db')).href, { logger })
  try {
    const app = await buildApp({ store, config: readConfig({ BASE_PATH: process.env.BASE_PATH }), logger })
    await app.ready()
    return format === 'yaml' ? toYaml(app.swagger()) : `${JSON.stringify(app.swagger(), null, 2)}\n`
  } finally {
    await store.close()
    rmSync(directory, { recursive: true })
  }
}
