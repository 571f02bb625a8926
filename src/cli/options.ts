// Options shared by several commands, and the database that they select.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { loadSetting, settingRows } from '../settings.ts'

export type DatabaseOptions = { databaseUrl?: string; json?: true }

/** Adds the flags of all settings, or of the settings with these keys, to a command. It parses them to `Flags`. */
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

/** Adds the options of commands on a database: its URL, and the format of the result. */
export const addDatabaseOptions = (command: Command) =>
  addSettingOptions(command, ['databaseUrl']).option('--json', 'print the result as JSON')

export type WorkOptions = DatabaseOptions & { quiet?: true }

/** Adds the options of long-running commands on a database. */
export const addWorkOptions = (command: Command) =>
  addDatabaseOptions(command).option('--quiet', 'show no progress')

/** Returns a parser for whole numbers from `least` to `most`, in decimal digits. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`)
  }
}

/** Returns the database URL of a command, from its flag, the environment or `.env`. */
export const findDatabase = ({ databaseUrl }: DatabaseOptions) => loadSetting('databaseUrl', { databaseUrl })
