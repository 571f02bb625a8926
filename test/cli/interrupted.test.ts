// A signal ends each command within a second, and no partial file remains.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import tap, { before, type Test, test } from 'tap'
import { cli } from '../support/commands.ts'
import { fill } from '../support/copies.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'
import { descendantsOf, inherited, preload, spawnProgram } from '../support/processes.ts'
import { open } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/wire.ts'

const promisedMs = 1000

/** Sends a signal and asserts that it ends the process: a shell shows 128 + its number as the exit code. */
async function stop(t: Test, child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const startMs = performance.now()
  // Twice, as from a terminal and from a parent that forwards it.
  for (let n = 0; n < 2; n++) child.kill(signal)
  t.same(await once(child, 'close'), [null, signal])
  assertWithin(t, performance.now() - startMs, promisedMs)
}

/** A store with enough plants to make every command slow. The tests only read it. */
const plants = 300_000
const large = sqlite.createDatabase(tap)
before(async () => fill(await open(tap, await large), plants))

function start(t: Test, command: string, DATABASE_URL: string, options?: string) {
  const script = `${options ? 'NODE_OPTIONS="$OPTIONS" ' : ''}exec '${process.execPath}' '${cli}' ${command}`
  const env = { ...inherited(), DATABASE_URL, OPTIONS: options }
  const { child, output } = spawnProgram(t, 'sh', ['-c', script], { env })
  return { child, said: () => output().stderr }
}

test('export and backup stop at a signal, and leave no file', async (t) => {
  const url = await large
  for (const [signal, command, message] of [
    ['SIGINT', 'export --format csv', 'interrupted: the export is incomplete. Run the command again'],
    ['SIGTERM', 'backup', 'interrupted: the copy is incomplete. Run the command again'],
    ['SIGHUP', 'export --format csv', 'interrupted: the export is incomplete. Run the command again'],
  ] as const) {
    const directory = createDirectory(t)
    const { child, said } = start(t, `${command} --quiet '${join(directory, 'plants.csv')}'`, url)
    await until(() => readdirSync(directory).some((name) => name.endsWith('.partial')))
    await stop(t, child, signal)
    t.equal(said(), `plant-store: ${message}\n`)
    t.same(readdirSync(directory), [])
  }
})

/** Makes a query of the check endless inside SQLite, which handles no signals. */
const endlessQuery = `
  import { writeSync } from 'node:fs'
  import { DatabaseSync } from 'node:sqlite'
  const { prepare } = DatabaseSync.prototype
  const numbers = 'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers'
  DatabaseSync.prototype.prepare = function (text) {
    if (text.includes('integrity_check')) {
      writeSync(2, 'asked')
      return prepare.call(this, numbers)
    }
    return prepare.call(this, text)
  }`

test('verify and backup stop during a long query, and leave no file', async (t) => {
  const url = await sqlite.createDatabase(t)
  await open(t, url)
  const directory = createDirectory(t)
  const commands = [
    ['verify --quiet', 'asked'],
    [
      `backup --quiet '${join(directory, 'b.db')}'`,
      'askedplant-store: interrupted: the copy is incomplete. Run the command again\n',
    ],
  ] as const
  for (const [command, message] of commands) {
    const { child, said } = start(t, command, url, preload(endlessQuery).NODE_OPTIONS)
    await until(() => said().includes('asked'))
    await stop(t, child, 'SIGINT')
    t.equal(said(), message)
    t.same(readdirSync(directory), [])
  }
})

const asFirst = ['-r', '-p', '-f', process.execPath, cli]
const skip = spawnSync('unshare', ['-r', '-p', '-f', 'true']).status !== 0 && 'no process namespaces here'

test('process 1 of a container stops at a signal', { skip }, async (t) => {
  // It accepts connections, and never responds.
  const server = createServer()
  const DATABASE_URL = `postgres://a@127.0.0.1:${await listen(t, server)}/a`
  for (const [command, stderr] of [
    ['status', /^$/],
    ['export', /^plant-store: interrupted: [^\n]+\n$/],
  ] as const) {
    const env = { ...inherited(), DATABASE_URL }
    const { child, ended } = spawnProgram(t, 'unshare', [...asFirst, command], { env })
    await once(server, 'connection')
    process.kill(descendantsOf(child.pid as number).at(-1) as number, 'SIGINT')
    t.match(await ended, { code: 130, stderr })
  }
})
