// Options that several commands have: settings, numbers, and those of long work.
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Setting } from '../config/setting.ts'
import { type Flags, type SettingName, settingEntries, settings } from '../config/settings.ts'

/** Gives a command a flag for every setting. */
export function addSettingOptions(command: Command): Command {
  for (const [, setting] of settingEntries) command.addOption(toOption(setting))
  return command
}

/** The option --database-url, for commands that need no other setting. */
export function databaseOption(): Option {
  return toOption(settings.databaseUrl)
}

/** The options of commands that take a while: which database, and what to show. */
export function addWorkOptions(command: Command): Command {
  return command
    .addOption(databaseOption())
    .option('--json', 'print the summary as JSON')
    .option('--quiet', 'show no progress')
}

/** An option whose value is a whole number from `least` to `most`, in decimal digits. */
export function numberOption(flags: string, about: string, least: number, most: number): Option {
  return new Option(flags, about).argParser((text) => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`)
  })
}

/** The settings given as flags of a command. */
export function readFlags(command: Command): Flags {
  const values = command.opts<Record<string, string | undefined>>()
  const given = settingEntries.flatMap(([key, setting]): [SettingName, string][] => {
    const text = values[toOption(setting).attributeName()]
    return text === undefined ? [] : [[key, text]]
  })
  return Object.fromEntries(given)
}

/** Replaces the names of settings in an error's message by the flags among `words` that set them. */
export function nameFlags(message: string, words: string[]): string {
  const flags = new Set(words.map((word) => word.split('=', 1)[0]))
  return settingEntries
    .filter(([, setting]) => flags.has(setting.flag))
    .reduce(
      // HOST within the pattern of a URL is not the setting.
      (text, [, setting]) => text.replaceAll(new RegExp(`(?<![\\w@,])${setting.name}\\b`, 'g'), setting.flag),
      message,
    )
}

function toOption(setting: Setting<unknown>): Option {
  const { name, value, description, defaultLabel, read } = setting
  // Show the default without setting it: a flag that was not given must not override the environment.
  const option = new Option(
    `${setting.flag} <${value}>`,
    `${description} (${name}; default: ${defaultLabel})`,
  )
  return Object.assign(option, { argChoices: read.choices })
}
