// The commands and what they share: the definitions from which help, completion and docs/cli.md are made.
import { Command } from 'commander'
import { hideSecrets } from '../config/mask.ts'
import { build } from '../version.ts'
import { columns, wrapProse } from './console/wrap.ts'

const help = `
DATABASE_URL says which database it is, from the environment or .env; --database-url beats it. plant-store serve --help has the
other settings, and plant-store config shows what is in force.

Exit codes: 0 done, 1 failed (or some records rejected), 2 not understood; 129, 130 or 143 interrupted by
SIGHUP, SIGINT or SIGTERM.`

/** `about`: what `--help` says of it, and what its own help begins with. */
type Entry = { about: string; load: () => Promise<Command> }

const commands: Record<string, Entry> = {
  serve: {
    about: 'Run the service. Operator messages go to stdout, the log to stderr.',
    load: async () => (await import('./commands/serve.ts')).serveCommand(),
  },
  config: {
    about: 'Show the settings that are in force, and where each comes from.',
    load: async () => (await import('./commands/config.ts')).configCommand(),
  },
  token: {
    about: 'Issue, list, rotate, revoke and explain access tokens.',
    load: async () => (await import('./commands/token.ts')).tokenCommand(),
  },
  import: {
    about: 'Add the plants of a file: NDJSON, JSON or CSV, also compressed.',
    load: async () => (await import('./commands/import.ts')).importCommand(),
  },
  export: {
    about: 'Write the plants into a file, or to stdout.',
    load: async () => (await import('./commands/export.ts')).exportCommand(),
  },
  backup: {
    about: 'Copy a SQLite database into a file, while the service runs.',
    load: async () => (await import('./commands/backup.ts')).backupCommand(),
  },
  restore: {
    about: 'Put a backup of a SQLite database where there is none.',
    load: async () => (await import('./commands/restore.ts')).restoreCommand(),
  },
  verify: {
    about: 'Check a whole database, and change nothing.',
    load: async () => (await import('./commands/verify.ts')).verifyCommand(),
  },
  copy: {
    about: 'Copy all plants and tokens into another database, and check the copy.',
    load: async () => (await import('./commands/copy.ts')).copyCommand(),
  },
  status: {
    about: 'Show what is in the store, its size, and whether a service runs on it.',
    load: async () => (await import('./commands/status.ts')).statusCommand(),
  },
  completion: {
    about: 'Print a script that completes commands, options, formats and files in a shell.',
    load: async () => (await import('./commands/completion.ts')).completionCommand(buildProgram),
  },
  openapi: {
    about: 'Write the OpenAPI document.',
    load: async () => (await import('./commands/openapi.ts')).openapiCommand(),
  },
}

/**
 * The program for a command line, with the one command that it asks for: to load the others would take most of its time.
 * Without a command line, with all.
 */
export async function buildProgram(words?: string[]): Promise<Command> {
  const program = new Command('plant-store')
    .description('A durable HTTP API to add and list plants.')
    .version(build)
    .helpCommand(true)
    .configureHelp({ ...columns, subcommandTerm: (command) => command.name() })
    .showHelpAfterError('(--help says what there is)')
    .addHelpText('after', help)
    .configureOutput({
      writeOut: (text) => process.stdout.write(wrapProse(text)),
      outputError: (text, write) => write(hideSecrets(text)),
    })
    .exitOverride()
  const asked = words?.[0] === 'help' ? words[1] : words?.[0]
  for (const [name, { about, load }] of Object.entries(commands)) {
    const command = words === undefined || name === asked ? await load() : new Command(name)
    program.addCommand(command.description(about))
  }
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
