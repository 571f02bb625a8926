// argv -> one command -> exit code: 0 done, 1 failed, 2 not understood.
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
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

const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  token: async () => (await import('./commands/token.ts')).tokenCommand(),
  copy: async () => (await import('./commands/copy.ts')).copyCommand(),
  openapi: async () => (await import('./commands/openapi.ts')).openapiCommand(),
}
// The one that is asked for is loaded alone; help and mistakes need them all.
const asked = commands[process.argv[2] as string]
for (const load of asked ? [asked] : Object.values(commands)) program.addCommand(await load())
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
