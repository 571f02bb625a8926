// backup and restore: what is put back is what was there at one moment, and everything in it is good.
import fs, {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { copyVerified } from '../../src/maintenance/backup/back-up.ts'
import { verifyStore } from '../../src/maintenance/verify/verify-store.ts'
import { count } from '../../src/runtime/count.ts'
import { startAppender } from '../support/appenders.ts'
import { runCommand } from '../support/commands.ts'
import { fill, open, sumLog } from '../support/copies.ts'
import { tamper } from '../support/damage.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { cli, runProgram } from '../support/imports.ts'
import { request, startApp } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'
import { listTokens } from '../support/tokens.ts'

/** A store with plants, and the path of its file. */
async function make(t: Test, count: number): Promise<{ store: Store; url: string; path: string }> {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  await fill(store, count)
  return { store, url, path: fileURLToPath(url) }
}

function run(args: string[], DATABASE_URL: string) {
  return runCommand(args, { DATABASE_URL })
}

test('a backup that is taken while another process writes is restored: the log as it was at one moment', async (t) => {
  const { store, url, path } = await make(t, 20_000)
  const appender = await startAppender(t, path)
  let over = false
  let added = 0
  const adding = (async () => {
    for (; !over; added++) await appender.add(`late ${added}`)
  })()
  const [backup, restored] = [join(createDirectory(t), 'b.db'), join(createDirectory(t), 'a', 'plants.db')]
  const first = Number(await appender.add('before'))
  const made = await run(['backup', backup, '--quiet'], url)
  const last = Number(await appender.add('after'))
  over = true
  await adding
  t.match(made, { code: 0, stderr: '' })
  t.ok(last > first + 2, `${last - first} plants were added meanwhile`)
  const { plants, checksum } = await verifyStore(`file:${backup}`)
  t.ok(plants >= first && plants < last, `${first} <= ${plants} < ${last}`)
  t.equal(made.stdout, `backed up ${count(plants, 'plant')} to ${backup}; verified, SHA-256 ${checksum}\n`)
  t.strictSame(readdirSync(dirname(backup)), ['b.db'], 'it is one file')
  if (process.platform !== 'win32') t.equal(statSync(backup).mode & 0o777, 0o600, 'that nobody else can read')

  const put = await run(['restore', backup, '--quiet'], `file:${restored}`)
  const words = `restored ${count(plants, 'plant')} to ${restored}; verified, SHA-256 ${checksum}\n`
  t.strictSame(put, { code: 0, stdout: words, stderr: '' })
  t.strictSame(readdirSync(dirname(restored)), ['plants.db'])
  const again = await open(t, `file:${restored}`)
  t.equal(await sumLog(again), checksum)
  t.equal(again.id, store.id)
  t.strictSame(await listTokens(again.sql), await listTokens(store.sql), 'with its tokens')
  const db = new DatabaseSync(restored, { readOnly: true })
  t.match(
    { ...db.prepare('PRAGMA journal_mode').get() },
    { journal_mode: 'wal' },
    'the service turns on its log',
  )
  db.close()
})

test('a backup is on stable storage before it has its name, and then its name is', async (t) => {
  const { path } = await make(t, 10)
  const backup = join(createDirectory(t), 'b.db')
  const synced: { isFile: boolean; isNamed: boolean }[] = []
  const { fsyncSync } = fs
  const replace = (sync: typeof fsyncSync) => {
    fs.fsyncSync = sync
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(fsyncSync))
  const log = statSync(`${path}-wal`).ino
  replace((descriptor) => {
    fsyncSync(descriptor)
    const stats = fs.fstatSync(descriptor)
    // Before anything is copied, what is found is synced.
    if (stats.ino !== log) synced.push({ isFile: stats.isFile(), isNamed: existsSync(backup) })
  })
  await copyVerified(path, backup, {})
  t.strictSame(synced, [
    { isFile: true, isNamed: false },
    { isFile: false, isNamed: true },
  ])
})

test('a restored store that grows differently is told apart from the original', async (t) => {
  const { store, url, path } = await make(t, 10)
  const [backup, restored] = [join(createDirectory(t), 'b.db'), join(createDirectory(t), 'c.db')]
  await copyVerified(path, backup, {})
  const [one, other] = [
    await startApp(t, url, { store }),
    await (async () => {
      await copyVerified(backup, restored, {})
      return startApp(t, `file:${restored}`)
    })(),
  ]
  const etag = async (at: string, query = '') => (await request(`${at}/plants${query}`)).headers.get('etag')
  t.equal(await etag(one.url), await etag(other.url), 'what both hold has one name')
  const post = (at: string, name: string) => request(`${at}/plants`, { body: { name, tag: '' } })
  for (const name of ['a', 'b']) await post(one.url, name)
  const lost = await request(`${one.url}/plants?limit=11`)
  const cursor = /<([^>]+)>/.exec(lost.headers.get('link') ?? '')?.[1]
  for (const name of ['A', 'B']) await post(other.url, name)
  t.not(await etag(other.url), await etag(one.url))
  const stale = { 'if-none-match': String(lost.headers.get('etag')) }
  t.match(await request(`${other.url}/plants?limit=11`, { headers: stale }), { status: 200 })
  t.match(await request(other.url + cursor), { status: 400 }, 'a cursor behind what was lost is refused')
  t.equal(
    await etag(other.url, '?limit=10'),
    await etag(one.url, '?limit=10'),
    'what was kept keeps its name',
  )
})

test('a backup replaces no existing file, and leaves nothing behind when it fails', async (t) => {
  const { url, path } = await make(t, 50)
  const directory = createDirectory(t)
  const backup = join(directory, 'b.db')
  writeFileSync(backup, 'precious')
  t.match(await run(['backup', backup], url), {
    code: 1,
    stderr: `plant-store: ${backup} already exists\n`,
  })
  t.equal(readFileSync(backup, 'utf8'), 'precious')
  const { code, stdout } = await run(['backup', backup, '--force', '--json', '--quiet'], url)
  t.equal(code, 0)
  const { checksum } = await verifyStore(url)
  t.match(JSON.parse(stdout), {
    file: backup,
    plants: 50,
    unchecked: 0,
    checksum,
    copySeconds: Number,
    verifySeconds: Number,
  })
  await tamper(url, 'UPDATE plants SET checksum = 1 WHERE position = 7')
  await t.rejects(copyVerified(path, join(directory, 'c.db'), {}), {
    message: 'the copy was not kept, because the source is damaged: plant 7 does not match its checksum',
  })
  await t.rejects(copyVerified(path, join(directory, 'no', 'c.db'), {}), {
    message: /^cannot write \S+c\.db: ENOENT: /,
  })
  const other = join(createDirectory(t), 'notes.db')
  const notes = new DatabaseSync(other)
  notes.exec('CREATE TABLE notes (text)')
  notes.close()
  await t.rejects(copyVerified(other, join(directory, 'c.db'), {}), {
    message: `${other} is not a plant store`,
  })
  t.strictSame(readdirSync(directory), ['b.db'])
})

test('--force never replaces the database that is read, nor one that has a log beside it', async (t) => {
  const { store, url, path } = await make(t, 10)
  const link = join(createDirectory(t), 'link.db')
  symlinkSync(path, link)
  for (const file of [path, link])
    for (const command of [['backup'], ['export', '--format', 'csv']])
      t.match(await run([...command, file, '--force'], url), {
        code: 1,
        stderr: `plant-store: ${path} is the database itself\n`,
      })
  const backup = join(createDirectory(t), 'b.db')
  for (const ending of ['-wal', '-journal']) {
    writeFileSync(backup + ending, 'of another database')
    await t.rejects(copyVerified(path, backup, { replace: true }), {
      message: `${backup}${ending} exists: ${backup} is a database in use`,
    })
    rmSync(backup + ending)
  }
  t.strictSame(readdirSync(dirname(backup)), [])
  t.equal((await store.log.head()).position, 10)
})

test('a backup that is stopped, while it copies or verifies, leaves nothing behind', async (t) => {
  const { path } = await make(t, 20_000)
  const directory = createDirectory(t)
  for (const unit of ['page', 'plant']) {
    const stop = new AbortController()
    const onProgress = (_done: number, _total: number, of = 'plant') => {
      if (of === unit) stop.abort(new Error(`enough ${unit}`))
    }
    const stopped = copyVerified(path, join(directory, 'b.db'), { signal: stop.signal, onProgress })
    await t.rejects(stopped, { message: `enough ${unit}` })
    t.strictSame(readdirSync(directory), [])
  }
})

test('a backup goes through a pipe, and is restored from one', async (t) => {
  const { store, url, path } = await make(t, 500)
  const sum = await sumLog(store)
  const directory = createDirectory(t)
  const shell = (line: string, DATABASE_URL: string) =>
    runProgram(t, 'sh', ['-c', line, process.execPath, cli], { DATABASE_URL })
  const backup = join(createDirectory(t), 'b.db')
  t.match(await shell(`"$0" "$1" backup - | cat >'${backup}'`, url), {
    code: 0,
    stderr: `backed up 500 plants; verified, SHA-256 ${sum}\n`,
  })
  const beside = readdirSync(dirname(path)).filter((name) => name.includes('partial'))
  t.strictSame(beside, [], 'nothing is left')
  const restore = (name: string, file: string) =>
    shell(`cat '${file}' | "$0" "$1" restore - --quiet`, `file:${join(directory, name)}`)
  t.match(await restore('a/plants.db', backup), {
    code: 0,
    stdout: new RegExp(`^restored 500 plants to .*SHA-256 ${sum}\n$`),
  })
  t.strictSame(readdirSync(join(directory, 'a')), ['plants.db'])
  t.equal(statSync(join(directory, 'a/plants.db')).mode & 0o777, 0o600)
  const bytes = readFileSync(backup)
  for (const [part, reason] of [
    [bytes.subarray(0, 20_000), /^plant-store: .*malformed\n$/],
    [bytes.subarray(0, 50), /^plant-store: stdin is not a plant store\n$/],
    [Buffer.alloc(9000, 'x'), /^plant-store: cannot open stdin: file is not a database\n$/],
  ] as const) {
    writeFileSync(backup, part)
    t.match(await restore('b/c/plants.db', backup), { code: 1, stdout: '', stderr: reason })
  }
  t.strictSame(readdirSync(directory), ['a'], 'no directory is left')
})

test('restore replaces no existing file', async (t) => {
  const { path } = await make(t, 5)
  const backup = join(createDirectory(t), 'b.db')
  await copyVerified(path, backup, {})
  for (const ending of ['', '-wal', '-shm', '-journal']) {
    const directory = createDirectory(t)
    const found = join(directory, `plants.db${ending}`)
    writeFileSync(found, 'precious')
    const { code, stderr } = await run(['restore', backup], `file:${directory}/plants.db`)
    t.equal(code, 1)
    t.equal(
      stderr,
      `plant-store: ${found} exists: stop the service and move it away, with the files beside it\n`,
    )
    t.strictSame(readdirSync(directory), [`plants.db${ending}`])
    t.equal(readFileSync(found, 'utf8'), 'precious')
  }
  const directory = createDirectory(t)
  mkdirSync(join(directory, 'a'))
  const broken = join(createDirectory(t), 'broken.db')
  writeFileSync(broken, readFileSync(backup).fill(0xff, 4096))
  for (const [from, reason] of [
    [join(directory, 'none'), /^plant-store: there is no file [^\n]+\n$/],
    [join(directory, 'a'), /^plant-store: \S+\/a is a directory\n$/],
    [
      fileURLToPath(import.meta.url),
      /^plant-store: cannot open \S+backup\.test\.\w+: file is not a database\n$/,
    ],
    [broken, /^plant-store: cannot copy \S+broken\.db to \S+\/plants\.db: [^\n]+ malformed\n$/],
  ] as const) {
    t.match(await run(['restore', from, '--quiet'], `file:${directory}/plants.db`), {
      code: 1,
      stderr: reason,
    })
    t.notOk(existsSync(join(directory, 'plants.db')))
  }
})

test('backup and restore of PostgreSQL are refused, and name its own tools', async (t) => {
  for (const [name, tools] of [
    ['backup', /pg_dump or pg_basebackup/],
    ['restore', /pg_restore or psql/],
  ] as const) {
    const { code, stderr } = await run([name, 'b.db'], 'postgres://127.0.0.1:1/none')
    t.equal(code, 1)
    t.match(stderr, tools)
  }
})
