// openapi: writes the contract for the BASE_PATH in force, without the security scheme of an issuer.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { loadBasePath } from '../../config/load-config.ts'
import { makeContract, toYaml } from '../../http/openapi-document.ts'
import { operations } from '../../plants/operations.ts'
import { FileRefused } from '../../runtime/new-file.ts'

export function define(command: Command): void {
  command
    .option('--json', 'as JSON instead of YAML')
    .option('-o, --output <file>', 'write to a file instead of stdout')
    .action(async ({ json, output }: { json?: true; output?: string }) => {
      const contract = await makeContract(loadBasePath(), operations)
      const text = json ? `${JSON.stringify(contract, null, 2)}\n` : toYaml(contract)
      if (output === undefined) process.stdout.write(text)
      else write(output, text)
    })
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new FileRefused(`cannot write ${file}: ${(error as Error).message}`)
  }
}
