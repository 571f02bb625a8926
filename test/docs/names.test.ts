// Every file, script, setting, command, flag and metric named in README.md, CONTRIBUTING.md, SECURITY.md and docs/
// exists.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { buildProgram } from '../../src/cli/program.ts'
import { settingRows } from '../../src/settings.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string) => readFileSync(root + file, 'utf8')
const pages = globSync(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/**/*.md'], { cwd: root })
const source = globSync('src/**/*.ts', { cwd: root }).map(read).join('\n')
const { scripts } = JSON.parse(read('package.json'))
const settings = settingRows.flatMap(({ name, hasFile }) => (hasFile ? [name, `${name}_FILE`] : [name]))

/** Finds names in all pages by a pattern with the name as its first group, and asserts that they exist. */
function check(
  what: string,
  pattern: RegExp,
  least: number,
  exists: (name: string, ...more: string[]) => boolean,
) {
  test(`each ${what} that a page names exists`, async (t) => {
    const found = pages.flatMap((page) =>
      [...read(page).matchAll(pattern)].map(([, ...groups]) => ({ page, groups })),
    )
    t.ok(found.length >= least, `${found.length} are found`)
    for (const { page, groups } of found)
      if (!exists(...(groups as [string]))) t.fail(`${page}: ${groups.join(' ')}`)
  })
}

const folders = 'schemas|src|test|docs|deploy|examples|client|contract|bench|package|bin|\\.ci'
check('path', new RegExp(`\`((?:${folders})/[\\w./-]*)\``, 'g'), 40, (path) => existsSync(root + path))

check('script', /npm run ([\w:]+)/g, 20, (name) => name in scripts)

/** Names of other programs, and of the service's own tests, that look like settings. */
const foreign =
  /^(BASE_URL|TOKEN|READ_TOKEN|TARGET|NEW_DATABASE_URL|NODE_EXTRA_CA_CERTS|OTEL_\w+|TEST_\w+|UPDATE_GUIDE|REQUIRE_TOOLS)$/
check('setting', /(?<![\w$-])([A-Z]{2,}(?:_[A-Z]+)+)(?![\w:])/g, 100, (name) => {
  return settings.includes(name) || foreign.test(name)
})

check('metric', /`(plant_store_\w+|http_request_\w+)`/g, 15, (name) => source.includes(`'${name}'`))

check('alert', /(?<!#)\b(PlantStore[A-Z]\w+)/g, 15, (name) =>
  read('deploy/prometheus-rules.yml').includes(`: ${name}\n`),
)

const program = await buildProgram()
const flagsOf = (command: (typeof program)['commands'][number] | undefined) => [
  '--help',
  ...(command?.options ?? []).map(({ long }) => String(long)),
]
// A line that runs plant-store, up to a pipe or redirection.
check('command', /(?:^|[`\s/])plant-store ([a-z]+)((?: [^`\n|&;]+)?)/gm, 60, (name, rest = '') => {
  const command = program.commands.find((one) => one.name() === name)
  if (command === undefined) return false
  const child = command.commands.find((one) => one.name() === rest.trim().split(' ', 1)[0])
  const flags = rest.match(/(?<=\s|\[)--[a-z-]+/g) ?? []
  return flags.every((flag) => flagsOf(child ?? command).includes(flag))
})

check('flag', /`(--[a-z-]+)(?:[ =][^`]*)?`/g, 15, (flag) => {
  const all = program.commands.flatMap((command) => [command, ...command.commands]).flatMap(flagsOf)
  return all.includes(flag) || /^--(env|omit|tty|quick|grep|global|cacert|resolve|compressed)$/.test(flag)
})
