// Database URLs as arguments of a command, where `ps` would show a password to every user of the machine.
import { readFileSync } from 'node:fs'
import { maskUrl } from '../config/mask.ts'
import { ConfigError, readDatabaseUrl, UsageError } from '../config/values.ts'
import { StoreMissing, StoreRefused } from '../store/errors.ts'

/**
 * Reads the URL from an argument or option called `name`: the URL itself, `env:NAME` for an environment variable, or
 * `@FILE` for a file. Warns on stderr about a password on the command line. Throws ConfigError.
 */
export function readUrlArgument(text: string, name: string): string {
  if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), name)
  if (text.startsWith('@')) return readUrlFile(text.slice('@'.length), name)
  if (maskUrl(text) !== text)
    console.error(
      `plant-store: warning: every user of this machine can see the password in ${name}; use env:NAME or @FILE`,
    )
  try {
    return readDatabaseUrl(text, name)
  } catch (error) {
    throw new UsageError((error as ConfigError).message)
  }
}

/** Names the argument in errors of an engine, which knows its URL only by the name of the service's setting. */
export function named<T>(name: string, opening: Promise<T>): Promise<T> {
  return opening.catch((error: Error) => {
    if (error instanceof StoreMissing) throw new StoreRefused(error.message)
    error.message = error.message.replaceAll('DATABASE_URL', name)
    throw error
  })
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
