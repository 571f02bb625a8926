// config: shows what is in force and where it comes from, secrets masked.
import type { Command } from 'commander'
import { loadConfig } from '../../config/load-config.ts'
import { type Flags, settingEntries } from '../../config/settings.ts'
import { printResult } from '../console/output.ts'
import { formatTable } from '../console/table.ts'
import { addSettingOptions } from '../setting-options.ts'

const help = `
A flag overrides the environment, and the environment overrides .env in the working directory. The flags of serve are
allowed here as well, to show their effect. Passwords and tokens are masked.`

export function define(command: Command): void {
  addSettingOptions(command.option('--json', 'as JSON').addHelpText('after', help)).action(show)
}

function show({ json, ...flags }: Flags & { json?: true }): void {
  const { found, warnings } = loadConfig(flags)
  for (const warning of warnings) console.error(`plant-store: warning: ${warning}`)
  const rows = settingEntries.map(([key, { name, mask, defaultLabel }]) => {
    const { text, origin: from } = found[key]
    const value = mask(text) || null
    return { setting: { name, value, from }, cells: [name, value ?? `(${defaultLabel})`, from] }
  })
  const settings = rows.map(({ setting }) => setting)
  const cells = rows.map((row) => row.cells)
  printResult(settings, formatTable(['SETTING', 'VALUE', 'FROM'], cells), json)
}
