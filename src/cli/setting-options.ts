// Options that several commands have: settings, numbers, and those of long work.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type SettingName, settingEntries, settings } from '../config/settings.ts'

/** Gives a command a flag for every setting that has one; its options are then `Flags`. */
export function addSettingOptions(command: Command): Command {
  for (const [key, { flag }] of settingEntries) if (flag) command.addOption(settingOption(key))
  return command
}

/** The flag of a setting, whose value Commander keeps under the setting's own name. */
export function settingOption(key: SettingName): Option {
  const { flag, name, value, description, defaultLabel, hasFile, read } = settings[key]
  const names = hasFile ? `${name}, or ${name}_FILE` : name
  // Show the default without setting it: a flag that was not given must not override the environment.
  const option = new Option(`${flag} <${value}>`, `${description} (${names}; default: ${defaultLabel})`)
  return Object.assign(option, { argChoices: read.choices, attributeName: () => key })
}

export type DatabaseOptions = { databaseUrl?: string; json?: true }

/** The options of commands on a database: which one, and how to print the result. */
export function addDatabaseOptions(command: Command, json = 'as JSON'): Command {
  return command.addOption(settingOption('databaseUrl')).option('--json', json)
}

export type WorkOptions = DatabaseOptions & { quiet?: true }

/** The same for commands that take a while. */
export function addWorkOptions(command: Command): Command {
  return addDatabaseOptions(command, 'print the summary as JSON').option('--quiet', 'show no progress')
}

/** Makes a parser for a whole number from `least` to `most`, in decimal digits. */
export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`)
  }
}

/** Replaces the names of settings in an error's message by the flags among `words` that set them. */
export function nameFlags(message: string, words: string[]): string {
  const flags = new Set(words.map((word) => word.split('=', 1)[0]))
  let text = message
  // HOST within the pattern of a URL is not the setting.
  for (const [, { name, flag }] of settingEntries)
    if (flag && flags.has(flag)) text = text.replaceAll(new RegExp(`(?<![\\w@,])${name}\\b`, 'g'), flag)
  return text
}
