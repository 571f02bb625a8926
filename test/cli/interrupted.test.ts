// A signal ends each command within a second, whatever it waits for, and nothing half-written stays.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import tap, { before, type Test, test } from 'tap'
import { open } from '../support/copies.ts'
import { createDirectory, findEngine, sqlite } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'
import { cli, readPlants, runImport, startProgram, writeInput } from '../support/imports.ts'
import { noteProcess } from '../support/leftovers.ts'
import { preload } from '../support/preload.ts'
import { inherited } from '../support/processes.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'

const promisedMs = 1000
const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')

/** Sends a signal and resolves to how the process ended; the shell shows an exit code for an end by signal, too. */
async function stop(t: Test, child: ChildProcess, signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): Promise<number> {
  const closed = once(child, 'close')
  const startMs = performance.now()
  child.kill(signal)
  const [code, by] = await closed
  assertWithin(t, performance.now() - startMs, promisedMs)
  return by ? 128 + constants.signals[by as typeof signal] : code
}

/** A store with so many plants that nothing is done with them in a moment. All that use it only read. */
const plants = 300_000
const large = sqlite.createDatabase(tap)
before(async () => {
  const store = await open(tap, await large)
  await store.sql.execute(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${plants})
    INSERT INTO plants (position, item) SELECT n, '{"name":"plant ' || n || '","tag":"some tag"}' FROM numbers`)
})

/** `alone`: the options of Node, without what tap loads into each process, which listens to signals. */
function start(t: Test, command: string, DATABASE_URL: string, alone?: string) {
  const options = alone === undefined ? '' : 'NODE_OPTIONS="$ALONE" '
  const script = `${options}exec '${process.execPath}' '${cli}' ${command}`
  const env = { ...inherited(), DATABASE_URL, ALONE: alone }
  const child = spawn('sh', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stdout.resume()
  child.stderr.on('data', (text) => (stderr += text))
  return { child, said: () => stderr }
}

test('an export and a backup stop, and leave no file', async (t) => {
  const url = await large
  for (const [signal, command, message] of [
    ['SIGINT', 'export --format csv', 'interrupted: the export is incomplete. Run it again'],
    ['SIGTERM', 'backup', 'interrupted: the copy is incomplete. Run it again'],
    ['SIGHUP', 'export --format csv', 'interrupted: the export is incomplete. Run it again'],
  ] as const) {
    const directory = createDirectory(t)
    const { child, said } = start(t, `${command} --quiet '${join(directory, 'plants.csv')}'`, url)
    await until(() => readdirSync(directory).some((name) => name.endsWith('.partial')))
    t.equal(await stop(t, child, signal), 128 + constants.signals[signal], `${command}, ${signal}`)
    t.equal(said(), `plant-store: ${message}\n`)
    t.same(readdirSync(directory), [])
  }
})

/** A query of the check that never ends, in SQLite's own code, where no signal is heard. */
const endlessQuery = `
  import { writeSync } from 'node:fs'
  import { DatabaseSync, StatementSync } from 'node:sqlite'
  const { all } = StatementSync.prototype
  const numbers = 'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers'
  StatementSync.prototype.all = function (...values) {
    if (!this.sourceSQL.includes('integrity_check')) return all.apply(this, values)
    writeSync(1, 'asked')
    return new DatabaseSync(':memory:').prepare(numbers).all()
  }`

test('a check stops within a long query, and so does that of a backup, which leaves no file', async (t) => {
  const url = await sqlite.createDatabase(t)
  await open(t, url)
  const directory = createDirectory(t)
  const commands = [
    ['verify --quiet', ''],
    [
      `backup --quiet '${join(directory, 'b.db')}'`,
      'plant-store: interrupted: the copy is incomplete. Run it again\n',
    ],
  ] as const
  for (const [command, message] of commands) {
    const { child, said } = start(t, command, url, preload(endlessQuery).NODE_OPTIONS)
    await once(child.stdout, 'data')
    t.equal(await stop(t, child, 'SIGINT'), 130)
    t.equal(said(), message)
    t.same(readdirSync(directory), [])
  }
})

test('an export into a file that the shell opened stops in the middle', async (t) => {
  const url = await large
  const file = join(createDirectory(t), 'plants.csv')
  const { child } = start(t, `export --quiet --format csv > '${file}'`, url)
  await until(() => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0)
  t.equal(await stop(t, child, 'SIGINT'), 130)
  t.ok(readFileSync(file, 'utf8').split('\n').length < plants)
})

test('an import of a pipe stops before anything is written there, and in the middle', async (t) => {
  const url = await sqlite.createDatabase(t)
  for (const strict of ['', '--strict'])
    for (const input of ['', `${'{"name":"a","tag":""}\n'.repeat(9000)}{"na`]) {
      const fifo = join(createDirectory(t), 'fifo')
      execFileSync('mkfifo', [fifo])
      const { child, said } = start(t, `import --restart --quiet --batch 100 ${strict} '${fifo}'`, url)
      const store = await open(t, url)
      const { position } = await store.log.head()
      // Without input there is nothing to be seen of it but that it listens to SIGHUP.
      const isReady = () => /^SigCgt:.*[13579bdf]$/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
      if (input) {
        const writer = spawn('sh', ['-c', `exec 3>'${fifo}'; cat >&3; exec sleep 1000`])
        t.teardown(() => writer.kill('SIGKILL'))
        noteProcess(writer)
        writer.stdin.on('error', () => {})
        writer.stdin.end(input)
        if (!strict) await until(async () => (await store.log.head()).position > position)
      }
      await until(isReady)
      t.equal(await stop(t, child, 'SIGTERM'), 143, `${strict} ${input.length}`)
      t.match(
        said(),
        /^plant-store: interrupted at record [\d,]+; run the same command with --resume to go on\n$/,
      )
    }
})

test('an import into a server that does not answer stops, and says where it was', {
  skip: noPostgres,
}, async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  const names = Array.from({ length: 12_000 }, (_, n) => `plant ${n}`)
  const path = writeInput(t, names.map((name) => `{"name":"${name}","tag":""}\n`).join(''))
  const { child, ended } = startProgram(t, ['import', path, '--quiet', '--batch', '100', '--json'], url)
  await until(async () => (await store.log.head()).position > 0)
  const locked = new pg.Client({ connectionString: url })
  await locked.connect()
  t.teardown(() => locked.end())
  await locked.query('BEGIN; LOCK TABLE head IN ACCESS EXCLUSIVE MODE')
  t.equal(await stop(t, child, 'SIGINT'), 130)
  await locked.query('ROLLBACK')
  const { stdout, stderr } = await ended
  const records = Number(/interrupted at record ([\d,]+);/.exec(stderr)?.[1]?.replaceAll(',', ''))
  t.equal(JSON.parse(stdout).added, records)
  // A batch that the server has can come to its end there.
  const { result } = await runImport(url, path, { resume: true })
  t.ok(Number(result?.skipped) >= records)
  t.same(
    (await readPlants(url)).map(({ name }) => name),
    names,
  )
})

test('on a terminal no progress bar is among the plants', { skip: skipWithout('script') }, async (t) => {
  const url = await large
  const run = (line: string) =>
    new Promise<string>((resolve) => {
      const command = `'${process.execPath}' '${cli}' ${line}`
      const env = { ...inherited(), DATABASE_URL: url, TERM: 'xterm' }
      const child = spawn('script', ['-qefc', command, '/dev/null'], {
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      let shown = ''
      child.stdout.on('data', (text) => (shown += text)).on('end', () => resolve(shown))
    })
  const file = join(createDirectory(t), 'plants.csv')
  t.match(await run(`export ${file}`), '░', 'into a file there is one')
  const some = `export --after ${plants - 100_000}`
  for (const line of [some, `${some} | cat`]) t.notOk((await run(line)).includes('░'), line)
})

test('a dry run that is stopped says nothing of going on, as it kept no place', async (t) => {
  const { child, ended } = startProgram(t, ['import', '-', '--dry-run', '--quiet'], 'file:none/plants.db')
  child.stdin.write('{}\n'.repeat(50_000))
  await once(child.stderr, 'data')
  t.equal(await stop(t, child, 'SIGINT'), 130)
  t.match((await ended).stderr, /\nplant-store: interrupted at record [\d,]+\n$/)
})
