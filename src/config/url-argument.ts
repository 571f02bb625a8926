// Database URLs among the arguments of a command, where `ps` shows them to every user of the machine.
import type { Command } from 'commander'
import { maskUrl } from './mask.ts'
import { ConfigError, readDatabaseUrl } from './values.ts'

/**
 * The URL that an argument or option called `name` gives: itself, or as `env:NAME` in the environment. A password on the
 * command line is warned about on stderr. Ends the command when there is no such URL.
 */
export function readUrlArgument(text: string, name: string, command: Command): string {
  try {
    if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), name)
    const url = readDatabaseUrl(text, name)
    if (maskUrl(url) !== url)
      console.error(
        `plant-store: warning: every user of this machine can see the password in ${name}; use env:NAME or ~/.pgpass`,
      )
    return url
  } catch (error) {
    // The URL itself is not repeated: it may hold a password.
    return command.error(`error: ${(error as ConfigError).message}`, { exitCode: 2 })
  }
}

function readVariable(variable: string, name: string): string {
  const url = process.env[variable]
  if (!url) throw new ConfigError(`${name} names the environment variable ${variable}, which is not set`)
  return readDatabaseUrl(url, `${variable}, which ${name} names,`)
}
