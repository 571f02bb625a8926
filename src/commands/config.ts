// config: shows the effective settings and their sources, with secrets masked.
import type { Command } from 'commander'
import { formatTable, printResult } from '../cli/console.ts'
import { addSettingOptions } from '../cli/options.ts'
import { type Flags, loadSettings, settingRows } from '../settings.ts'

const help = `
A flag overrides the environment, and the environment overrides .env in the working directory. To show the
effect of flags of serve, pass them to config. Passwords and tokens are masked.`

export function define(command: Command): void {
  command.option('--json', 'print the settings as JSON').addHelpText('after', help)
  addSettingOptions(command).action(show)
}

async function show({ json, ...flags }: Flags & { json?: true }): Promise<void> {
  const { found } = loadSettings(flags)
  const settings = settingRows.map(({ key, name, mask }) => {
    const { text, from } = found[key]
    return { name, value: text ? mask(text) : null, from }
  })
  const unset = (index: number) => `(${settingRows[index]?.unset})`
  const cells = settings.map(({ name, value, from }, index) => [name, value ?? unset(index), from])
  await printResult(settings, formatTable(['SETTING', 'VALUE', 'FROM'], cells), json)
}
