// argv -> one command -> exit code: 0 done, 1 failed, 2 not understood.
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { copyCommand } from './commands/copy.ts'
import { openapiCommand } from './commands/openapi.ts'
import { serveCommand } from './commands/serve.ts'
import { tokenCommand } from './commands/token.ts'
import { ConfigError } from './config.ts'
import { StoreRefused } from './store/store.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const program = new Command('plant-store')
  .description('A durable HTTP API to add and list plants.')
  .version(version)
  .helpCommand(true)
  .showHelpAfterError('(--help says what there is)')
  .addHelpText(
    'after',
    '\nSettings come from the environment: DATABASE_URL, HOST, PORT and others; the README lists them.',
  )
  .exitOverride()
for (const command of [serveCommand(), tokenCommand(), copyCommand(), openapiCommand()])
  program.addCommand(command)
inherit(program)

/** Subcommands that are added do not take over how errors are handled. */
function inherit(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command)
    inherit(child)
  }
}

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = explain(error)
}

function explain(error: unknown): number {
  // Commander has said by itself what it did not understand, or what help was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const operational =
    error instanceof ConfigError || error instanceof StoreRefused || (error as NodeJS.ErrnoException).code
  /* c8 ignore next: no test can bring about a fault that is not known yet */
  console.error(`plant-store: ${operational ? (error as Error).message : (error as Error).stack}`)
  return 1
}
