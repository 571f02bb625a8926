// openapi: writes the contract for the BASE_PATH in force, without the security scheme of an issuer.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { writeNewFile } from '../cli/new-file.ts'
import { loadBasePath } from '../config/load-config.ts'
import { makeContract, toYaml } from '../http/openapi-document.ts'
import { operations } from '../plants/operations.ts'

type Options = { json?: true; output: string; force?: true }

export function define(command: Command): void {
  command
    .option('--json', 'as JSON instead of YAML')
    .option('-o, --output <file>', 'write to a file; - is stdout', '-')
    .option('--force', 'replace the file if it exists')
    .action(async ({ json, output, force: replace }: Options) => {
      const contract = await makeContract(loadBasePath(), operations)
      const text = json ? `${JSON.stringify(contract, null, 2)}\n` : toYaml(contract)
      if (output === '-') process.stdout.write(text)
      else await writeNewFile(output, { replace }, async (path) => writeFileSync(path, text))
    })
}
