// npm run release: creates the files of a release in release/, or in the given directory. `--archives linux-x64`
// creates only the archive of that platform, `--archives none` creates none.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeArchive, makeTar, platforms } from './archive.ts'
import { describeCommit } from './commit.ts'

const root = join(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { archives: { type: 'string', default: Object.keys(platforms).join() } },
})
const directory = resolve(positionals[0] ?? join(root, 'release'))
const { version } = JSON.parse(read('package.json'))
const artefact = (ending: string) => join(directory, `plant-store-${version}${ending}`)

/** The code that serves requests. The figures in the README do not measure documents and other commands. */
const requestPath = ['schemas', 'src', ...['cli', 'commands', 'plugins/docs'].map((room) => `:!src/${room}`)]

/** Folders of which the packages contain every file, or its compiled code. */
const packed = ['bin', 'client/src', 'deploy', 'docs', 'examples', 'schemas', 'src']
/** Files that npm packs always, here and in the client. */
const always = ['readme*', 'licen?e*', 'copying*'].flatMap((name) => [name, `client/${name}`])

requireCleanTree()
const notes = findNotes()
requireFigures()
mkdirSync(directory, { recursive: true })
if (readdirSync(directory).length > 0) refuse(`${directory} is not empty`)
// npm keeps the modes of files.
process.umask(0o022)
run('sh', ['-c', 'git ls-files -z | xargs -0 chmod u=rwX,go=rX'])
const workspaces = ['--workspaces', '--include-workspace-root']
run('npm', ['pack', '--silent', '--ignore-scripts=false', ...workspaces, '--pack-destination', directory])
copyFileSync(join(root, 'dist/sbom.cdx.json'), artefact('.cdx.json'))
copyFileSync(join(root, 'openapi.yaml'), artefact('.openapi.yaml'))
writeFileSync(artefact('.notes.md'), notes)
for (const platform of values.archives.split(',').filter((name) => name in platforms))
  makeArchive(artefact('.tgz'), platform, directory)
makeImage()
const sums = readdirSync(directory).map((name) => `${hash(join(directory, name))}  ${name}\n`)
writeFileSync(join(directory, 'SHA256SUMS'), sums.join(''))
console.log(sums.join('').trimEnd())

/** A release with uncommitted changes, or without history, would not be reproducible. */
function requireCleanTree(): void {
  const commit = describeCommit() ?? refuse('this is not a clone with history; create the release in one')
  // Also ignored files, which may be secrets: npm packs whole folders.
  const args = [
    'ls-files',
    '--others',
    ...packed,
    ...always.map((name) => `:(glob,icase)${name}`),
    ':!deploy/secrets',
  ]
  const others = execFileSync('git', args, { cwd: root, encoding: 'utf8' })
  if (commit.endsWith('-dirty') || others !== '')
    refuse(`the working tree has changes: commit them, or create the release in a fresh clone\n${others}`)
}

/** Returns the section of this version in the changelog, without its heading, which must have a date. */
function findNotes(): string {
  const sections = read('CHANGELOG.md').split(/^## (?=\[)/m)
  const section = sections.find((one) => one.startsWith(`[${version}] - `))
  if (section && /^\S+ - \d{4}-\d\d-\d\d\n/.test(section))
    return `${section.replace(/^.*\n+/, '').trimEnd()}\n`
  return refuse(`CHANGELOG.md has no dated section for ${version}: see docs/releasing.md`)
}

function requireFigures(): void {
  if (!existsSync(new URL('../bench/results/latest.json', import.meta.url)))
    refuse('no benchmark figures; run npm run bench on a quiet machine')
  const { commit } = JSON.parse(read('bench/results/latest.json')).machine
  const { status } = spawnSync('git', ['diff', '--quiet', `${commit}`, '--', ...requestPath], { cwd: root })
  if (status === 0) return
  const reason =
    status === 1 ? 'and code that serves requests has changed since' : 'which is not in this clone'
  refuse(`the figures are from ${commit}, ${reason}; run npm run bench on a quiet machine`)
}

/** In the OCI format, which has no health checks. */
function makeImage(): void {
  if (spawnSync('buildah', ['--version']).status !== 0) {
    console.error('SKIP the image: buildah is not installed (Debian: buildah)')
    return
  }
  const image = `plant-store:${version}`
  run(process.execPath, ['deploy/image.ts', image, artefact('.tgz')])
  const place = mkdtempSync(join(tmpdir(), 'plant-store-image-'))
  run('buildah', ['push', '--quiet', image, `oci:${place}:${image}`])
  writeFileSync(artefact('.oci.tar'), makeTar(place, '.'))
  rmSync(place, { recursive: true })
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

function run(command: string, args: string[]): void {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
}

function refuse(reason: string): never {
  console.error(reason)
  process.exit(1)
}

function hash(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
