// The first commands of the README with each supported npm on each supported Node. npm 9 and 10 do not link the Node of
// the lockfile into PATH.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import tap, { type Test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { descendantsOf, isRunning, root, run, spawnProgram } from '../support/processes.ts'
import { findProgram, skipWithout } from '../support/tools.ts'
import { install, systemPath } from './installed.ts'

type Cell = { npm: string; node: number }

const npms = ['9.9.4', '10.8.2', '10.9.9', '11', '12']
const all = npms.flatMap((npm) => [20, 22, 24].map((node): Cell => ({ npm, node })))
/** npm 12 does not run on Node 20. */
const cells = all.filter(({ npm, node }) => npm !== '12' || node !== 20)
/** Also with the packages for development, whose scripts once failed there. */
const forDevelopment: Cell = { npm: '10.8.2', node: 20 }

const directory = createDirectory(tap)
const clone = join(directory, 'clone')
const data = join(directory, 'data')

const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' })

function copyFiles(): void {
  const list = git('ls-files', '-z', '--cached', '--others', '--exclude-standard')
  for (const path of list.split('\0').filter((path) => path && existsSync(join(root, path))))
    cpSync(join(root, path), join(clone, path), { recursive: true })
}

/** Installs the programs of a cell. Resolves to the environment with them, or to undefined if they are unavailable. */
async function prepare({ npm, node }: Cell): Promise<NodeJS.ProcessEnv | undefined> {
  const nodeName = `node-linux-${process.arch}`
  for (const [name, version] of Object.entries({ npm, [nodeName]: node })) {
    const folder = join(directory, `${name}-${version}`)
    mkdirSync(folder, { recursive: true })
    if (existsSync(join(folder, 'node_modules', name))) continue
    if (!(await install(folder, ['--prefix', folder, `${name}@${version}`]))) return undefined
  }
  const bin = join(directory, `bin-${npm}-${node}`)
  if (!existsSync(bin)) {
    mkdirSync(bin)
    const programs = join(directory, `npm-${npm}`, 'node_modules/npm/bin')
    for (const name of ['npm', 'npx']) symlinkSync(join(programs, `${name}-cli.js`), join(bin, name))
    const program = join(directory, `${nodeName}-${node}`, 'node_modules', nodeName, 'bin/node')
    symlinkSync(program, join(bin, 'node'))
  }
  return { PATH: `${bin}${delimiter}${systemPath}`, PORT: '0', DATABASE_URL: `file:${data}.db` }
}

function skipTest(t: Test): void {
  t.pass('not tried', { skip: 'the registry cannot be reached' })
}

/** Runs a command in the clone and asserts that it succeeds. Resolves to its stdout. */
async function runThere(t: Test, env: NodeJS.ProcessEnv, ...[command = '', ...args]: string[]) {
  const { code, stdout, stderr } = await run(command, args, { cwd: clone, env })
  t.equal(code, 0, `${[command, ...args].join(' ')}: ${stdout.slice(-1000)}${stderr.slice(-3000)}`)
  t.notMatch(stderr, /EBADENGINE/)
  return stdout
}

/** Runs npm start, the curl line that it prints, and SIGTERM to npm, or to its group if npm forwards no signal. */
async function startAndStop(t: Test, env: NodeJS.ProcessEnv, passesSignals: boolean): Promise<void> {
  const there = { cwd: clone, env, detached: true }
  const { child, ended, listening, output } = spawnProgram(t, 'npm', ['start'], there)
  const pid = child.pid as number
  t.teardown(() => child.exitCode === null && child.signalCode === null && process.kill(-pid, 'SIGKILL'))
  await listening()
  const [, line = ''] = /^ {2}(curl .*)$/m.exec(output().stdout) ?? []
  t.not(line, '', JSON.stringify(output()))
  const answer = await run('sh', ['-c', `${line} --silent --show-error --include`])
  t.match(answer.stdout, /^HTTP\/1\.1 200 OK\r\n.*\r\n\[\]$/s, answer.stderr)
  t.match(await runThere(t, env, 'npx', 'plant-store', 'token', 'list'), /first/)
  const pids = descendantsOf(pid)
  process.kill(passesSignals ? pid : -pid, 'SIGTERM')
  const { stderr } = await ended
  t.match(stderr, /"signal":"SIGTERM","msg":"stopping"/)
  t.same(pids.filter(isRunning), [], 'no process is left')
}

async function tryCell(t: Test, cell: Cell): Promise<void> {
  const env = await prepare(cell)
  if (!env) return skipTest(t)
  for (const ending of ['', '-wal', '-shm']) await run('rm', ['-f', `${data}.db${ending}`])
  await runThere(t, env, 'npm', 'ci', '--omit=dev', '--ignore-scripts', '--prefer-offline')
  await startAndStop(t, env, !cell.npm.startsWith('9.'))
}

async function tryDevelopment(t: Test): Promise<void> {
  const env = await prepare(forDevelopment)
  if (!env) return skipTest(t)
  await runThere(t, env, 'npm', 'ci', '--ignore-scripts', '--prefer-offline')
  const stdout = await runThere(t, env, 'npm', 'test', '--', 'test/list/listing.test.ts')
  t.match(stdout, /^# \{ total: (\d+), pass: \1 \}$/m)
  t.match(await runThere(t, env, 'npm', 'pack'), /^plant-store-.*\.tgz$/m)
}

const isPossible = process.platform === 'linux' && findProgram('git') !== undefined
const options = { skip: isPossible ? skipWithout('curl') : 'it needs Linux and git', timeout: 600_000 }
if (!options.skip) copyFiles()
for (const cell of cells) {
  const title = `npm ${cell.npm} on Node ${cell.node} installs and starts the service, and SIGTERM leaves no process`
  tap.test(title, options, (t) => tryCell(t, cell))
}
const { npm, node } = forDevelopment
tap.test(`npm ${npm} on Node ${node} runs a test and packs the package`, options, tryDevelopment)
