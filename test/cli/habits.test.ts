// All commands: a closed pipe, a full disk, and an unexpected error, which also ends the service.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import tap, { before, type Test, test } from 'tap'
import { cli, runCommand, runShell, spawnCli } from '../support/commands.ts'
import { fill } from '../support/copies.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { preload } from '../support/processes.ts'
import { request, type Service, startService } from '../support/service.ts'
import { open } from '../support/stores.ts'

/** Runs a line of bash in an empty directory; `stdout` ends with the exit code of the first part of a pipe. */
const shell = (t: Test, line: string, DATABASE_URL: string) =>
  runShell(t, `${line}; echo "\${PIPESTATUS[0]}"`, { DATABASE_URL }, createDirectory(t))

/** A store whose lists of plants and tokens are larger than every buffer. The tests only read it. */
let fullStore: string
before(async () => {
  fullStore = await sqlite.createDatabase(tap)
  const store = await open(tap, fullStore)
  await fill(store, 4000)
  const values = `'${'x'.repeat(90)}', '${'0'.repeat(64)}', 'plants:read', 0, NULL, NULL, NULL`
  const rows = Array.from({ length: 2000 }, (_, n) => `('${n}', ${values})`)
  await store.sql.execute(`INSERT INTO tokens VALUES ${rows}`)
})

test('a command ends quietly with 0 when its reader closes the pipe', async (t) => {
  const lines = ['token list | head -1 >head', 'export --quiet | head -1 >head', 'openapi | head -0']
  for (const line of lines) {
    const { stdout, stderr } = await shell(t, `plant-store ${line}`, fullStore)
    t.strictSame({ stdout, stderr }, { stdout: '0\n', stderr: '' }, line)
  }
  for (const command of ['import - <<<x', 'import - --rejects - --skip-invalid <<<\'{"name":""}\''])
    t.equal((await shell(t, `plant-store ${command} | head -0`, fullStore)).stdout, '1\n', command)
  const faults = 'import - < <(echo name,tag; yes , | head -100000) 2> >(head -1 >head)'
  t.match((await shell(t, `plant-store ${faults}`, fullStore)).stdout, /^0 added.* 100,000 rejected.*\n1\n$/)
})

const noFullDisk = existsSync('/dev/full') ? false : 'there is no /dev/full'

test('reports a full disk of stdout in one line, with exit code 1', { skip: noFullDisk }, async (t) => {
  for (const command of ['token list', 'export --quiet', `import - --dry-run <<<'{"name":"a","tag":""}'`]) {
    const { stdout, stderr } = await shell(t, `plant-store ${command} >/dev/full`, fullStore)
    t.equal(stdout, '1\n')
    t.match(stderr, /^plant-store: cannot write to stdout: ENOSPC[^\n]*\n$/)
  }
})

test('names an unwritable file as the user wrote it', async (t) => {
  const folder = createDirectory(t)
  const backup = join(folder, 'b.db')
  await runCommand(['backup', backup], { DATABASE_URL: fullStore })
  const cases: [name: string, args: string][] = [
    ['a.ndjson', 'export a.ndjson'],
    ['a.db', 'backup a.db'],
    ['r.db', `restore b.db --database-url file:r.db`],
    // In one chunk, of which a part fits.
    ['stdout', 'openapi >cut'],
    ['stdout', 'export --after 3000 >cut'],
  ]
  for (const [name, args] of cases) {
    // Limits each file to 16 KiB.
    const line = `cd '${folder}'; unset NODE_OPTIONS; ulimit -f 16; exec '${process.execPath}' '${cli}' ${args}`
    const full = await runShell(t, line, { DATABASE_URL: fullStore, NODE_COMPILE_CACHE: '' })
    t.match(full, { code: 1, signal: null, stdout: '' }, name)
    t.match(full.stderr, new RegExp(`^plant-store: cannot [^\n]+${name}: [^\n]+\n$`))
    t.notMatch(full.stderr, '.partial')
    if (['r.db', 'stdout'].includes(name)) continue
    const beside = args.replace(name, `no/${name}`).split(' ')
    const missing = await runCommand(beside, { DATABASE_URL: fullStore }, folder)
    const stderr = `plant-store: cannot write no/${name}: its directory does not exist\n`
    t.strictSame(missing, { code: 1, stdout: '', stderr })
  }
  t.strictSame(readdirSync(folder), ['b.db', 'cut'])
})

/** Makes the checksum of a row throw. */
const brokenChecksums = `
  import { syncBuiltinESMExports } from 'node:module'
  import zlib from 'node:zlib'
  zlib.crc32 = () => { throw new TypeError('unforeseen') }
  syncBuiltinESMExports()`

test('an unexpected error ends a command with its stack and exit code 1', async (t) => {
  const { ended } = spawnCli(t, ['verify'], { ...preload(brokenChecksums), DATABASE_URL: fullStore })
  t.match(await ended, { code: 1, stdout: '', stderr: /^plant-store: TypeError: unforeseen\n {4}at / })
})

const brokenOnSignal = `process.on('SIGUSR2', () => { throw new TypeError('unforeseen') })`

/** Makes the writer thread fail after it has added a plant. */
const failingWriter = `
  import { syncBuiltinESMExports } from 'node:module'
  import { isMainThread } from 'node:worker_threads'
  import zlib from 'node:zlib'
  const { crc32 } = zlib
  zlib.crc32 = (...args) => {
    if (!isMainThread) setImmediate(() => { throw new TypeError('unforeseen') })
    return crc32(...args)
  }
  syncBuiltinESMExports()`

const failures: [title: string, code: string, fail: (service: Service) => unknown][] = [
  ['', brokenOnSignal, ({ child }) => child.kill('SIGUSR2')],
  [
    ' in the thread that writes',
    failingWriter,
    ({ url }) => request(`${url}/plants`, { body: { name: 'a', tag: '' } }).catch(() => {}),
  ],
]

for (const [title, code, fail] of failures)
  test(`logs an unexpected error${title}, and ends the service with exit code 1`, async (t) => {
    const DATABASE_URL = await sqlite.createDatabase(t)
    const service = await startService(t, { ...preload(code), DATABASE_URL, DRAIN_DELAY: '3600' })
    await fail(service)
    t.match(await service.ended, { code: 1, signal: null })
    const lines = service.output().stderr.trim().split('\n')
    const failure = lines.map((line) => JSON.parse(line)).find(({ level }) => level === 60)
    t.match(failure, { msg: 'the service failed', err: { message: 'unforeseen' } })
  })
