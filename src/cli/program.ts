// The commands and what they share: the definitions from which help, completion and docs/cli.md are made.
import { Command, Help } from 'commander'
import { hideSecrets } from '../config/mask.ts'
import { build } from '../runtime/version.ts'

const width = 80
const formatter = new Help()

const help = `
DATABASE_URL says which database it is, from the environment or .env; --database-url beats it. plant-store serve --help has the
other settings, and plant-store config shows what is in force.

Exit codes: 0 done, 1 failed (or some records rejected), 2 not understood; 129, 130 or 143 interrupted by
SIGHUP, SIGINT or SIGTERM.`

/** Descriptions of the commands, with which their own help begins; each is a module in commands/. */
const commands = {
  serve: 'Run the service. Operator messages go to stdout, the log to stderr.',
  config: 'Show the effective settings, and where each comes from.',
  token: 'Issue, list, rotate, revoke and explain access tokens.',
  import: 'Add the plants of a file: NDJSON, JSON or CSV, plain or compressed.',
  export: 'Write all plants to a file or to stdout.',
  backup: 'Copy a SQLite database to a file, while the service runs.',
  restore: 'Restore a backup of a SQLite database to a path where there is none.',
  verify: 'Check a whole database; only --repair changes it.',
  copy: 'Copy all plants and tokens to another database, and check the copy.',
  status: 'Show the contents of a store, its size, and whether a service runs on it.',
  completion: 'Print a completion script for a shell.',
  openapi: 'Write the OpenAPI document.',
}

type CommandModule = { define(command: Command, build: typeof buildProgram): void }

/**
 * Builds the program for a command line, with only the command that it names: loading the others would take most of the
 * time. Without a command line: with all of them.
 */
export async function buildProgram(words?: string[]): Promise<Command> {
  const program = new Command('plant-store')
    .description('A durable HTTP API to add and list plants.')
    .version(build)
    .helpCommand(true)
    .configureHelp({ helpWidth: width, subcommandTerm: (command) => command.name() })
    .showHelpAfterError('(see --help)')
    .addHelpText('after', help)
    .configureOutput({
      writeOut: (text) => process.stdout.write(wrapProse(text)),
      outputError: (text, write) => write(hideSecrets(text)),
    })
    .exitOverride()
  const asked = words?.[0] === 'help' ? words[1] : words?.[0]
  for (const [name, description] of Object.entries(commands)) {
    const command = program.command(name).description(description)
    if (words !== undefined && name !== asked) continue
    const module: CommandModule = await import(`./commands/${name}.ts`)
    module.define(command, buildProgram)
  }
  return program
}

/** Wraps paragraphs; indented lines stay as they are. */
function wrapProse(text: string): string {
  return text.replace(/^(?! )[^\n]+(?:\n(?! )[^\n]+)*/gm, (paragraph) =>
    formatter.boxWrap(paragraph.replaceAll('\n', ' '), width),
  )
}
