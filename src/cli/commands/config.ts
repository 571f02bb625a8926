// config: shows what is in force and where it comes from, secrets masked.
import { Command } from 'commander'
import { type Found, loadConfig, type Origin } from '../../config/load-config.ts'
import type { Setting } from '../../config/setting.ts'
import { settingEntries } from '../../config/settings.ts'
import { printResult } from '../console/output.ts'
import { formatTable } from '../console/table.ts'
import { addSettingOptions, readFlags } from '../setting-options.ts'

const help = `
A flag overrides the environment, and the environment overrides .env in the working directory. The flags of serve are
allowed here as well, to show their effect. Passwords and tokens are masked.`

export function makeCommand(): Command {
  const command = new Command('config').option('--json', 'as JSON').addHelpText('after', help)
  return addSettingOptions(command).action(({ json }: { json?: true }) => {
    const { found, warnings } = loadConfig(readFlags(command))
    for (const warning of warnings) console.error(`plant-store: warning: ${warning}`)
    const rows = settingEntries.map(([key, setting]) => show(setting, found[key]))
    printResult(rows.map(toJson), formatTable(['SETTING', 'VALUE', 'FROM'], rows.map(toCells)), json)
  })
}

type Row = { name: string; value: string; from: Origin; defaultLabel: string }

/** A row of the table. `value` is empty for a setting that is unset and has no default; `defaultLabel` fills in. */
function show(setting: Setting<unknown>, { text, origin }: Found): Row {
  const { name, defaultLabel, mask } = setting
  return { name, value: mask(text), from: origin, defaultLabel }
}

function toJson({ name, value, from }: Row) {
  return { name, value: value || null, from }
}

function toCells({ name, value, from, defaultLabel }: Row): string[] {
  return [name, value || `(${defaultLabel})`, from]
}
