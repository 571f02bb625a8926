// The commands and what they share: the definitions from which help, completion and docs/cli.md are made.
import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { Command } from 'commander'
import { hideSecrets } from './config/mask.ts'

const { version } = JSON.parse(readFileSync(findPackageJSON(import.meta.url) as string, 'utf8')) as {
  version: string
}

const help = `
DATABASE_URL says which database it is, from the environment or .env; --database-url beats it. plant-store serve --help has the
other settings, and plant-store config shows what is in force.

Exit codes: 0 done, 1 failed (or some records rejected), 2 not understood, 130 or 143 interrupted (SIGINT, SIGTERM).`

const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  config: async () => (await import('./commands/config.ts')).configCommand(),
  token: async () => (await import('./commands/token.ts')).tokenCommand(),
  import: async () => (await import('./commands/import.ts')).importCommand(),
  export: async () => (await import('./commands/export.ts')).exportCommand(),
  backup: async () => (await import('./commands/backup.ts')).backupCommand(),
  restore: async () => (await import('./commands/restore.ts')).restoreCommand(),
  verify: async () => (await import('./commands/verify.ts')).verifyCommand(),
  copy: async () => (await import('./commands/copy.ts')).copyCommand(),
  status: async () => (await import('./commands/status.ts')).statusCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(buildProgram),
  openapi: async () => (await import('./commands/openapi.ts')).openapiCommand(),
}

/** The program with the one command that is asked for, since loading it is all that it waits for; or with all. */
export async function buildProgram(asked?: string): Promise<Command> {
  const program = new Command('plant-store')
    .description('A durable HTTP API to add and list plants.')
    .version(version)
    .helpCommand(true)
    .showHelpAfterError('(--help says what there is)')
    .addHelpText('after', help)
    .configureOutput({ outputError: (text, write) => write(hideSecrets(text)) })
    .exitOverride()
  const load = Object.hasOwn(commands, asked ?? '') ? commands[asked as string] : undefined
  for (const one of load ? [load] : Object.values(commands)) program.addCommand(await one())
  inherit(program)
  return program
}

/** Subcommands that are added do not take over how errors are handled. */
function inherit(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command)
    inherit(child)
  }
}
