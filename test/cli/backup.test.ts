// backup and restore: a restored store is complete, verified, and a snapshot of one moment.
import fs, { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { count, startProgress } from '../../src/cli/console.ts'
import { writeNewFile } from '../../src/cli/new-file.ts'
import { copyVerified } from '../../src/commands/backup.ts'
import { startAppender } from '../store/appenders.ts'
import { runCommand, runShell } from '../support/commands.ts'
import { fill, sumLog, verify } from '../support/copies.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { preload, watchSyncs } from '../support/processes.ts'
import { add, open, type Store } from '../support/stores.ts'
import { tamper } from './damage.ts'

/** A store with plants, and the path of its file. */
async function make(t: Test, count: number): Promise<{ store: Store; url: string; path: string }> {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  await fill(store, count)
  return { store, url, path: fileURLToPath(url) }
}

const run = (args: string[], DATABASE_URL: string) => runCommand(args, { DATABASE_URL })

test('backs up a snapshot of the log while a service writes, and restores it', async (t) => {
  const { store, url, path } = await make(t, 20_000)
  const appender = await startAppender(t, path)
  let over = false
  let added = 0
  const adding = (async () => {
    for (; !over; added++) await appender.add(`late ${added}`)
  })()
  const name = 'b'.repeat(240)
  const [backup, restored] = [join(createDirectory(t), name), join(createDirectory(t), 'a', 'plants.db')]
  const first = Number(await appender.add('before'))
  const made = await run(['backup', backup, '--quiet'], url)
  const last = Number(await appender.add('after'))
  over = true
  await adding
  t.match(made, { code: 0, stderr: '' })
  t.ok(last > first + 2, `${last - first} plants were added meanwhile`)
  const { plants, checksum } = await verify(`file:${backup}`)
  t.ok(plants >= first && plants < last, `${first} <= ${plants} < ${last}`)
  t.equal(made.stdout, `backed up ${count(plants, 'plant')} to ${backup}; verified, SHA-256 ${checksum}\n`)
  t.strictSame(readdirSync(dirname(backup)), [name], 'a single file')

  const put = await run(['restore', backup, '--quiet'], `file:${restored}`)
  const words = `restored ${count(plants, 'plant')} to ${restored}; verified, SHA-256 ${checksum}\n`
  t.strictSame(put, { code: 0, stdout: words, stderr: '' })
  t.strictSame(readdirSync(dirname(restored)), ['plants.db'])
  const again = await open(t, `file:${restored}`)
  t.equal(await sumLog(again), checksum)
  t.equal(again.id, store.id)
  t.strictSame(await again.tokens.all(), await store.tokens.all(), 'including its tokens')

  await add(again, 'b')
  const one = await store.log.head([plants, plants + 1])
  const other = await again.log.head([plants, plants + 1])
  t.equal(one.markOf(plants), other.markOf(plants), 'the common part has the same marks')
  t.not(one.markOf(plants + 1), other.markOf(plants + 1), 'plants added after the backup have another mark')
})

test('syncs a backup before it is renamed, and its directory before and afterwards', async (t) => {
  const { path } = await make(t, 10)
  const backup = join(createDirectory(t), 'b.db')
  const synced: { isFile: boolean; isNamed: boolean }[] = []
  const log = fs.statSync(`${path}-wal`).ino
  // Fails, as on FAT, which has no links; other tests use them.
  t.intercept(fs, 'linkSync', { value: undefined })
  watchSyncs(t, (descriptor) => {
    const stats = fs.fstatSync(descriptor)
    if (stats.ino !== log) synced.push({ isFile: stats.isFile(), isNamed: existsSync(backup) })
  })
  const { signal } = new AbortController()
  await copyVerified(path, backup, { signal, progress: startProgress(true) })
  t.strictSame(synced, [
    { isFile: false, isNamed: false },
    { isFile: true, isNamed: false },
    { isFile: false, isNamed: true },
  ])
})

test('backup replaces an existing file only with --force, and leaves nothing when it fails', async (t) => {
  const { url } = await make(t, 50)
  const directory = createDirectory(t)
  const backup = join(directory, 'b.db')
  writeFileSync(backup, 'precious')
  const refused = { code: 1, stderr: `plant-store: ${backup} already exists\n` }
  t.match(await run(['backup', backup], url), refused)
  t.equal(readFileSync(backup, 'utf8'), 'precious')
  const env = { DATABASE_URL: url, ...preload("console.log('{1}')") }
  const { code, stdout } = await runCommand(['backup', backup, '--force', '--json', '--quiet'], env)
  t.equal(code, 0, 'although a preloaded module prints')
  const { checksum } = await verify(`file:${backup}`)
  t.strictSame(JSON.parse(stdout.replace('{1}\n', '')), { file: backup, plants: 50, checksum })

  const killed = preload("if (process.argv.includes('verify')) process.kill(process.pid)")
  const unverified = { code: 1, stderr: 'plant-store: the copy could not be verified, and was deleted\n' }
  const args = ['backup', join(directory, 'c.db'), '--quiet']
  t.match(await runCommand(args, { DATABASE_URL: url, ...killed }), unverified)
  await tamper(url, 'UPDATE plants SET checksum = 1 WHERE position = 7')
  const cases: [url: string, reason: RegExp][] = [
    [url, /^plant-store: the copy was deleted, [^\n]+: plant 7 does not match its checksum\n$/],
    [import.meta.url, /^plant-store: cannot open \S+backup\.test\.\w+: file is not a database\n$/],
    [`file:${directory}/none.db`, /^plant-store: no regular file at [^\n]+\n$/],
    ['postgres://127.0.0.1:1/none', /^plant-store: [^\n]+pg_dump or pg_basebackup\n$/],
  ]
  for (const [from, stderr] of cases)
    t.match(await run(['backup', join(directory, 'c.db'), '--quiet'], from), { code: 1, stdout: '', stderr })
  t.strictSame(readdirSync(directory), ['b.db'])
})

test('--force replaces neither the database that is read nor one with a log beside it', async (t) => {
  const { store, url, path } = await make(t, 10)
  const link = join(createDirectory(t), 'link.db')
  symlinkSync(path, link)
  for (const file of [path, link, `${path}-wal`, `${path}-shm`, `${path}-journal`])
    for (const command of [['backup'], ['export', '--format', 'csv']])
      t.match(await run([...command, file, '--force'], url), {
        code: 1,
        stderr: /^plant-store: \S+ is a file of the database itself\n$/,
      })
  const backup = join(createDirectory(t), 'b.db')
  for (const ending of ['-wal', '-journal']) {
    writeFileSync(backup + ending, 'of another database')
    t.match(await run(['backup', backup, '--force'], url), {
      stderr: `plant-store: ${backup}${ending} exists: ${backup} is a database in use\n`,
    })
    rmSync(backup + ending)
  }
  const write = async (to: string) => {
    for (const file of [to, `${backup}-wal`]) writeFileSync(file, 'late')
  }
  const { signal } = new AbortController()
  await t.rejects(writeNewFile(backup, { signal, replace: true }, write), { message: /-wal exists/ })
  t.strictSame(readdirSync(dirname(backup)), ['b.db-wal'])
  t.equal((await store.log.head()).position, 10)
})

test('backs up into a pipe, and restores from one', async (t) => {
  const { store, url, path } = await make(t, 500)
  const sum = await sumLog(store)
  const directory = createDirectory(t)
  const backup = join(createDirectory(t), 'b.db')
  const seen: unknown[] = []
  const watcher = watch(dirname(path), (_, name) => seen.push(name))
  t.match(await runShell(t, `plant-store backup - | cat >'${backup}'`, { DATABASE_URL: url, TMPDIR: '' }), {
    code: 0,
    stderr: `backed up 500 plants; verified, SHA-256 ${sum}\n`,
  })
  watcher.close()
  t.match(await runCommand(['backup', '-'], { DATABASE_URL: url, TMPDIR: '/no/such' }), {
    code: 1,
    stderr: /^plant-store: cannot write \/no\/such\/\S+: its directory does not exist\n$/,
  })
  t.match(seen.join(), '.partial', 'with an empty TMPDIR, verifies the copy beside the database')
  const beside = readdirSync(dirname(path)).filter((name) => name.includes('partial'))
  t.strictSame(beside, [], 'leaves nothing behind')
  const restore = (name: string) => {
    const DATABASE_URL = `file:${join(directory, name)}`
    return runShell(t, `cat '${backup}' | plant-store restore - --quiet`, { DATABASE_URL })
  }
  t.match(await restore('a/plants.db'), {
    code: 0,
    stdout: new RegExp(`^restored 500 plants to .*SHA-256 ${sum}\n$`),
  })
  t.strictSame(readdirSync(join(directory, 'a')), ['plants.db'])
  const bytes = readFileSync(backup)
  for (const [part, reason] of [
    [bytes.subarray(0, 20_000), /^plant-store: .*malformed\n$/],
    [bytes.subarray(0, 50), /^plant-store: .*malformed\n$/],
    [Buffer.alloc(9000, 'x'), /^plant-store: file is not a database\n$/],
  ] as const) {
    writeFileSync(backup, part)
    t.match(await restore('b/plants.db'), { code: 1, stdout: '', stderr: reason })
  }
  t.strictSame(readdirSync(join(directory, 'b')), [], 'leaves nothing behind')
})

test('restore replaces no existing file, and refuses a file that is not a backup', async (t) => {
  const { url } = await make(t, 5)
  const backup = join(createDirectory(t), 'b.db')
  await run(['backup', backup], url)
  for (const ending of ['', '-wal', '-shm', '-journal']) {
    const directory = createDirectory(t)
    const found = join(directory, `plants.db${ending}`)
    writeFileSync(found, 'precious')
    const refused = await run(['restore', backup], `file:${directory}/plants.db`)
    const reason = `${found} exists: stop the service, then move away all files of this database`
    t.strictSame(refused, { code: 1, stdout: '', stderr: `plant-store: ${reason}\n` })
    t.equal(readFileSync(found, 'utf8'), 'precious')
  }
  const directory = createDirectory(t)
  const broken = join(createDirectory(t), 'broken.db')
  writeFileSync(broken, readFileSync(backup).fill(0xff, 4096))
  const own = fileURLToPath(import.meta.url)
  for (const [from, reason] of [
    [join(directory, 'none'), /^plant-store: no regular file at [^\n]+none\n$/],
    [directory, /^plant-store: no regular file at \S+\n$/],
    [own, /^plant-store: cannot open \S+backup\.test\.\w+: file is not a database\n$/],
    [broken, /^plant-store: cannot copy \S+broken\.db to \S+\/plants\.db: [^\n]+ malformed\n$/],
  ] as const) {
    const refused = await run(['restore', from, '--quiet'], `file:${directory}/plants.db`)
    t.match(refused, { code: 1, stderr: reason })
    t.strictSame(readdirSync(directory), [])
  }
  t.match(await run(['restore', backup], 'postgres://127.0.0.1:1/none'), {
    code: 1,
    stderr: /pg_restore or psql/,
  })
})
