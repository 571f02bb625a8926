// npm run release: makes what a release consists of, in release/ or in the directory that is given.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = join(import.meta.dirname, '..')
const directory = resolve(process.argv[2] ?? join(root, 'release'))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

requireChangelog()
mkdirSync(directory, { recursive: true })
if (readdirSync(directory).length > 0) refuse(`${directory} is not empty`)
execFileSync(
  'npm',
  ['pack', '--silent', '--workspaces', '--include-workspace-root', '--pack-destination', directory],
  {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  },
)
copyFileSync(join(root, 'dist/sbom.cdx.json'), join(directory, `plant-store-${version}.cdx.json`))
copyFileSync(join(root, 'openapi.yaml'), join(directory, `plant-store-${version}.openapi.yaml`))
const sums = readdirSync(directory).map((name) => `${hash(join(directory, name))}  ${name}\n`)
writeFileSync(join(directory, 'SHA256SUMS'), sums.join(''))
console.log(sums.join('').trimEnd())
warnOfChanges()

function requireChangelog(): void {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  if (changelog.includes(`\n## [${version}]`)) return
  refuse(`CHANGELOG.md has no section for ${version}; docs/releasing.md says what comes before`)
}

function refuse(reason: string): never {
  console.error(reason)
  process.exit(1)
}

function hash(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** What is not committed has no tag: nobody could make the same again. */
function warnOfChanges(): void {
  const { stdout } = spawnSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' })
  if (stdout) console.error('warning: made from a working tree with changes; do not publish it')
}
