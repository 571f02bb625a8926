// config: shows what is in force and where it comes from, secrets masked.
import { Command } from 'commander'
import { type Found, type Loaded, loadConfig } from '../config/config.ts'
import { addSettingOptions, readFlags } from '../config/options.ts'
import { type Setting, settingEntries } from '../config/settings.ts'
import { printResult } from '../console/output.ts'
import { formatTable } from '../console/table.ts'

const help = `
A flag beats the environment, and the environment beats .env in the working directory. It takes the flags of serve, to show
what serve would do with them. Passwords and tokens are masked.`

export function configCommand(): Command {
  const command = new Command('config')
    .description('Show the settings that are in force, and where each comes from.')
    .option('--json', 'as JSON')
    .addHelpText('after', help)
  return addSettingOptions(command).action(({ json }: { json?: true }) => {
    const { found, warnings } = loadConfig(readFlags(command))
    const rows = show(found)
    for (const warning of warnings) console.error(`plant-store: warning: ${warning}`)
    printResult(rows, formatTable(['SETTING', 'VALUE', 'FROM'], rows.map(toCells)), json)
  })
}

type Shown = { name: string; value: string | null; from: string }

/** `value` is null for what nobody set and has no default. */
function show(found: Loaded['found']): Shown[] {
  return settingEntries.map(([key, setting]) => {
    const { text, origin } = found[key]
    return {
      name: setting.name,
      value: showText(setting, found[key]) || null,
      from: text ? origin : 'default',
    }
  })
}

function showText({ mask = (text) => text }: Setting<unknown>, { text }: Found): string {
  return mask(text)
}

function toCells({ name, value, from }: Shown): string[] {
  const { otherwise = '' } =
    settingEntries.map(([, setting]) => setting).find((one) => one.name === name) ?? {}
  return [name, value ?? `(${otherwise})`, from]
}
