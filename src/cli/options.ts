// Options that several commands have, and the databases that they name.
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { maskUrl } from '../setting-values.ts'
import { loadSetting, readDatabaseUrl, settingRows } from '../settings.ts'
import { engineOf } from '../store/engines.ts'
import { CommandError } from './console.ts'

export type DatabaseOptions = { databaseUrl?: string; json?: true }

/** Gives a command the flag of every setting that has one, or of those with these keys; its options are then `Flags`. */
export function addSettingOptions(command: Command, keys?: string[]): Command {
  for (const { key, name, flag, value, description, choices, unset, hasFile } of settingRows) {
    if (flag === undefined || keys?.includes(key) === false) continue
    const names = hasFile ? `${name}, or ${name}_FILE` : name
    // Show the default without setting it: a flag that was not given must not override the environment.
    const option = new Option(`${flag} <${value}>`, `${description} (${names}; default: ${unset})`)
    command.addOption(Object.assign(option, { argChoices: choices, attributeName: () => key }))
  }
  return command
}

/** The options of commands on a database: which one, and how to print the result. */
export function addDatabaseOptions(command: Command, json = 'print the result as JSON'): Command {
  return addSettingOptions(command, ['databaseUrl']).option('--json', json)
}

export type WorkOptions = DatabaseOptions & { quiet?: true }

/** The same for commands that take a while. */
export function addWorkOptions(command: Command): Command {
  return addDatabaseOptions(command, 'print the summary as JSON').option('--quiet', 'show no progress')
}

/** Makes a parser for a whole number from `least` to `most`, in decimal digits. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`)
  }
}

/** Resolves the database of a command from its flag, the environment or `.env`. */
export function findDatabase({ databaseUrl }: DatabaseOptions): string {
  if (databaseUrl) warnOfPassword(databaseUrl, '--database-url')
  return loadSetting('databaseUrl', { databaseUrl })
}

/**
 * Reads a URL from an argument or option called `name`: the URL itself, `env:NAME` for an environment variable, or
 * `@FILE` for a file, as `ps` would show a password to every user of the machine.
 */
export function readUrl(text: string, name: string): string {
  warnOfPassword(text, name)
  if (text.startsWith('@')) return readDatabaseUrl(readUrlFile(text.slice(1)), `the URL in ${text.slice(1)}`)
  if (!text.startsWith('env:')) return readDatabaseUrl(text, name)
  const variable = text.slice('env:'.length)
  const url = process.env[variable]?.trim()
  if (url) return readDatabaseUrl(url, variable)
  throw new CommandError(`${name} names the environment variable ${variable}, which is not set`)
}

function warnOfPassword(url: string, name: string): void {
  if (maskUrl(url) === url) return
  const instead =
    name === '--database-url' ? 'put DATABASE_URL into the environment or .env' : 'use env:NAME or @FILE'
  console.error(
    `plant-store: warning: every user of this machine can see the password in ${name}; ${instead}`,
  )
}

function readUrlFile(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new CommandError(`cannot read ${file}: ${(error as Error).message}`)
  }
}

/** Names a database in the summaries of commands: the path of a file, or the URL without its password. */
export function nameDatabase(url: string): string {
  return engineOf(url).path?.(url) ?? maskUrl(url)
}
