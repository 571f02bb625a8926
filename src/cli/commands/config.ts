// config: shows what is in force and where it comes from, secrets masked.
import { Command } from 'commander'
import { loadConfig } from '../../config/load-config.ts'
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
    const rows = settingEntries.map(([key, { name, mask, defaultLabel }]) => {
      const { text, origin: from } = found[key]
      return { name, value: mask(text) || null, from, defaultLabel }
    })
    const cells = rows.map(({ name, value, from, defaultLabel }) => [
      name,
      value ?? `(${defaultLabel})`,
      from,
    ])
    const settings = rows.map(({ defaultLabel, ...setting }) => setting)
    printResult(settings, formatTable(['SETTING', 'VALUE', 'FROM'], cells), json)
  })
}
