// docs/cli.md says what the commands say of themselves.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { makePage } from '../../docs/cli.ts'
import { buildProgram } from '../../src/cli/program.ts'

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

test('docs/cli.md is what npm run cli-docs makes of the commands', async (t) => {
  t.equal(page, await makePage())
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
