// Databases that are refused in one line and left unchanged: foreign ones, and those made before 1.0.0.
import * as fs from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { refusal } from '../../src/store/sqlite/read-only.ts'
import { writeInput } from '../cli/imports.ts'
import { runCommand, spawnCli } from '../support/commands.ts'
import { createDirectory, engines } from '../support/engines.ts'
import { preload } from '../support/processes.ts'
import { request, startApp } from '../support/service.ts'

test('a disk that is too full for the -shm, a lock and a left -journal are named', async (t) => {
  const nameOf = (errcode: number) => refusal('a.db', Object.assign(new Error('puzzle'), { errcode })).message
  t.equal(nameOf(4874), 'cannot open a.db: database or disk is full')
  t.match(nameOf(776), /: it has a -journal; run: sqlite3 'a\.db' \.tables$/)
  // SQLite waited 10 s for a lock of the `-shm`.
  t.equal(nameOf(15), 'cannot open a.db: the database is locked by another program')
})

/** Commands that do not create a database. */
const users = [
  ['token', 'create', '--name', 'new'],
  ['token', 'revoke', 'POhKNv1F'],
  ['token', 'rotate', 'POhKNv1F'],
  ['token', 'list'],
  ['status'],
  ['export', '-'],
  ['verify'],
]

const earlier = join(import.meta.dirname, '../fixtures/plants-1.0.0.db')
const file = (bytes: string) => (path: string) => fs.writeFileSync(path, bytes)
const database = (statements: string) => (path: string) => {
  const made = new DatabaseSync(path)
  made.exec(statements)
  made.close()
}
const notes = 'CREATE TABLE notes (text)'
const refused: [title: string, make: (path: string) => void, reason: RegExp][] = [
  ['text', file('This is no database.\n'.repeat(1000)), /not a database/],
  ['one byte', file('x'), /not a plant store/],
  ['another SQLite database', database(notes), /not a plant store/],
  ['another database with a version', database(`${notes}; PRAGMA user_version = 83`), /not a plant store/],
  ['earlier store', (path) => fs.copyFileSync(earlier, path), /export it with that version, then import it/],
  ['later, but unreleased store', database('PRAGMA application_id = 0x504c4e54'), /export it with that ver/],
]

/** Makes a file look like a mount point. */
const mounted = (path: string) =>
  preload(`
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const read = fs.readFileSync
    const line = ${JSON.stringify(`36 35 8:1 /plants.db ${path.replaceAll(' ', '\\040')} rw - ext4 /dev/sda rw`)}
    fs.readFileSync = (name, ...rest) => (name === '/proc/self/mountinfo' ? line : read(name, ...rest))
    syncBuiltinESMExports()`)

test('refuses a database that is mounted as a single file, or has a hard link, but reads a backup', async (t) => {
  const path = join(createDirectory(t), 'my plants.db')
  const input = writeInput(t, '{"name":"a","tag":""}\n')
  const DATABASE_URL = `file:${path}`
  t.equal((await runCommand(['import', input], { DATABASE_URL })).code, 0)
  const assertRefused = async (env: NodeJS.ProcessEnv, reason: RegExp) => {
    for (const args of [
      ['token', 'create', '--name', 'new'],
      ['import', input, '--again'],
      ['verify'],
      ['backup', '-'],
    ])
      t.match(await spawnCli(t, args, env).ended, { code: 1, stderr: reason })
  }
  const alone = /my plants\.db is mounted without its log: mount its dir/
  await assertRefused({ ...mounted(path), DATABASE_URL }, alone)
  const backup = `${path}.backup`
  t.equal((await runCommand(['backup', backup], { DATABASE_URL })).code, 0)
  for (const file of [path, backup]) fs.linkSync(file, `${file}.link`)
  t.match(await runCommand(['verify'], { DATABASE_URL: `file:${backup}` }), { code: 0, stdout: /1 plant,/ })
  const linked = /my plants\.db\S* has hard links: stop all processes, and keep only one/
  for (const url of [DATABASE_URL, `${DATABASE_URL}.link`]) await assertRefused({ DATABASE_URL: url }, linked)
})

test('refuses an empty database with another text encoding', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  database(`PRAGMA encoding = 'UTF-16le'; ${notes}; DROP TABLE notes`)(path)
  const input = writeInput(t, '{"name":"a","tag":""}\n')
  const stderr = 'plant-store: the text encoding of the database must be UTF-8\n'
  t.match(await runCommand(['import', input], { DATABASE_URL: `file:${path}` }), { code: 1, stderr })
})

for (const [title, make, reason] of refused)
  test(`every command refuses a file with ${title}, and leaves it unchanged`, async (t) => {
    const directory = createDirectory(t)
    const path = join(directory, 'plants.db')
    make(path)
    const before = fs.readFileSync(path)
    for (const args of [
      ...users,
      ['serve'],
      ['copy', '--from', `file:${path}`, '--to', `file:${join(directory, 'copy.db')}`],
      ['backup', join(directory, 'backup.db')],
      ['import', writeInput(t, '{"name":"a","tag":""}\n')],
    ]) {
      const { code, stdout, stderr } = await runCommand(args, { PORT: '0', DATABASE_URL: `file:${path}` })
      t.same({ code, stdout }, { code: 1, stdout: '' }, args.join(' '))
      t.match(stderr, /^plant-store: [^\n]+\n$/)
      t.match(stderr, reason)
      t.ok(fs.readFileSync(path).equals(before))
    }
    // SQLite itself creates these files for each reader.
    const own = fs.readdirSync(directory).filter((name) => !/-wal$|-shm$/.test(name))
    t.same(own, ['plants.db'])
  })

for (const engine of engines)
  test(`${engine.name}: commands other than serve, import, restore and copy --to create no database`, async (t) => {
    const url = await engine.createDatabase(t)
    for (const args of users) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: url })
      t.same([code, stdout], [1, ''], args.join(' '))
      t.match(stderr, /^plant-store: [^\n]*(no database|not contain a plant store)[^\n]*\n$/, args.join(' '))
    }
  })

test('turns an empty file into a database, and creates missing directories only for its user', async (t) => {
  const directory = createDirectory(t)
  const empty = join(directory, 'plants.db')
  fs.writeFileSync(empty, '')
  for (const url of [`file:${empty}`, `file:${directory}/a/b%2520c/plants.db`]) {
    const app = await startApp(t, url)
    t.equal((await request(`${app.url}/plants`)).text, '[]')
  }
  t.ok(fs.statSync(join(directory, 'a', 'b%20c', 'plants.db')).isFile())
  if (process.platform !== 'win32') t.equal(fs.statSync(join(directory, 'a')).mode & 0o777, 0o700)
})

test('ends if a table is damaged', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const env = { DATABASE_URL: `file:${path}` }
  t.match(await runCommand(['import', writeInput(t, '{"name":"a","tag":""}\n')], env), { code: 0 })
  fs.writeFileSync(path, fs.readFileSync(path).fill(255, 4096, 8192))
  t.match(await runCommand(['serve'], env), { code: 1, stderr: /malformed/ })
})

test('reports a path where no file can be created in one line', async (t) => {
  const directory = createDirectory(t)
  fs.writeFileSync(join(directory, 'file'), '')
  fs.mkdirSync(join(directory, 'directory'))
  const urls = ['file:file/plants.db', 'file:directory', 'file::memory:', 'file:a%00b', 'file:file/deep/a.db']
  for (const DATABASE_URL of urls) {
    const refused = await runCommand(['serve'], { PORT: '0', DATABASE_URL }, directory)
    t.match(refused, { code: 1, stderr: /^plant-store: [^\n]+\n$/ }, DATABASE_URL)
  }
})
