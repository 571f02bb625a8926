// Database URLs among the arguments of a command, where `ps` shows them to every user of the machine.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { maskUrl } from '../config/mask.ts'
import { ConfigError, readDatabaseUrl } from '../config/values.ts'

/**
 * The URL that an argument or option called `name` gives: itself, as `env:NAME` in the environment, or as `@FILE` in a
 * file. A password on the command line is warned about on stderr. Ends the command when there is no such URL.
 */
export function readUrlArgument(text: string, name: string, command: Command): string {
  try {
    if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), name)
    if (text.startsWith('@')) return readUrlFile(text.slice('@'.length), name)
    const url = readDatabaseUrl(text, name)
    if (maskUrl(url) !== url)
      console.error(
        `plant-store: warning: every user of this machine can see the password in ${name}; use env:NAME or @FILE`,
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

function readUrlFile(file: string, name: string): string {
  try {
    return readDatabaseUrl(readFileSync(file, 'utf8').trim(), `The URL in ${file}, which ${name} names,`)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(`${name} names a file that cannot be read: ${(error as Error).message}`)
  }
}
