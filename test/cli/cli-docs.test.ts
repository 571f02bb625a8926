// docs/cli.md says what the commands say of themselves.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { makePage } from '../../docs/cli.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { settingEntries } from '../../src/config/settings.ts'

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

test('docs/cli.md is what npm run cli-docs makes of the commands', async (t) => {
  t.equal(page, await makePage())
})

test('every variable of OpenTelemetry, which has no flag, is in docs/traces.md', async (t) => {
  const traces = readFileSync(new URL('../../docs/traces.md', import.meta.url), 'utf8')
  for (const [, { name, flag }] of settingEntries)
    if (!flag) t.match(traces, new RegExp(`^\\|.*\`${name}\`.*\\|$`, 'm'))
})

test('every command and every option is in it', async (t) => {
  for (const { name, options, children } of (await buildProgram()).commands.map((command) => ({
    name: command.name(),
    options: command.options.map(({ flags }) => flags),
    children: command.commands.map((child) => child.name()).filter((child) => child !== 'help'),
  }))) {
    for (const title of children.length > 0 ? children.map((child) => `${name} ${child}`) : [name]) {
      t.match(page, `\n### plant-store ${title}\n`)
    }
    for (const flags of options) t.match(page, `\n| \`${flags}\` | `)
  }
})
