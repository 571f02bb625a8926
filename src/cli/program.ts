// The program: its commands and its help.
import { Command, Help } from 'commander'
import { makeMask, maskUrl } from '../mask.ts'
import { build, commandName } from '../version.ts'

const width = 80

const help = `
DATABASE_URL names the database, from the environment or .env; --database-url overrides it. ${commandName} config
shows all settings with their effective values.

Exit codes: 0 success, 1 failure (or invalid records), 2 usage error; 129, 130 or 143 interrupted by SIGHUP, SIGINT or
SIGTERM.`

/** The description and the module of each command. */
const commands: Record<string, [string, () => Promise<{ define(command: Command): void }>]> = {
  serve: ['Run the service.', () => import('../commands/serve.ts')],
  config: ['Show the effective settings, and where each comes from.', () => import('../commands/config.ts')],
  token: ['Create, list, rotate and revoke tokens.', () => import('../commands/token.ts')],
  import: ['Add the plants of an NDJSON, JSON or CSV file.', () => import('../commands/import/import.ts')],
  export: ['Write all plants to a file or to stdout.', () => import('../commands/export.ts')],
  backup: ['Back up a SQLite database to a file.', () => import('../commands/backup.ts')],
  restore: ['Restore a backup of a SQLite database.', () => import('../commands/restore.ts')],
  verify: ['Check a whole database without changing it.', () => import('../commands/verify.ts')],
  copy: ['Copy plants and tokens to another database and compare them.', () => import('../commands/copy.ts')],
  status: ['Show the number of plants and tokens, and the servers.', () => import('../commands/status.ts')],
  openapi: ['Print the OpenAPI document.', () => import('../commands/openapi.ts')],
}

/**
 * Builds the program. Loads only the command named by `words`, because loading all commands would take most of the
 * startup time. Without `words`, loads all commands.
 */
export async function buildProgram(words?: string[]): Promise<Command> {
  const program = new Command('plant-store')
    .description('A durable HTTP API to add and list plants.')
    .version(build)
    .configureHelp({ helpWidth: width, subcommandTerm: (command) => command.name() })
    .showHelpAfterError('(see --help)')
    .addHelpText('after', help)
    .configureOutput({
      writeOut: (text) => process.stdout.write(wrapProse(text)),
      // A usage error repeats arguments, which may contain secrets.
      outputError: (text, write) => write(maskUrl(mask(text)).replaceAll(unknownValue, '$1***')),
    })
    .exitOverride()
  const asked = words?.[0] === 'help' ? words[1] : words?.[0]
  for (const [name, [description, load]] of Object.entries(commands)) {
    const one = program.command(name).description(description)
    if (words === undefined || name === asked) (await load()).define(one)
  }
  return program
}

/** Wraps paragraphs, except indented lines. */
function wrapProse(text: string): string {
  return text.replace(/^(?! )[^\n]+(?:\n(?! )[^\n]+)*/gm, (paragraph) =>
    new Help().boxWrap(paragraph.replaceAll('\n', ' '), width),
  )
}

const mask = makeMask([])
const unknownValue = /(unknown option '--[^=]+=)[^']*/g
