// A database that is not ours, or newer than we are, is refused in one line and left as it was.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pino from 'pino'
import { test } from 'tap'
import { runCommand, spawnCli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, startService } from '../support/service.ts'
import { openStore } from '../support/stores.ts'

function hashFile(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function execute(path: string, statements: string): void {
  const database = new DatabaseSync(path)
  database.exec(statements)
  database.close()
}

const refused: [title: string, make: (path: string) => void, reason: RegExp][] = [
  ['text', (path) => writeFileSync(path, 'This is no database.\n'.repeat(1000)), /not a database/],
  ['a short text', (path) => writeFileSync(path, 'no database'), /not a plant store/],
  ['one byte', (path) => writeFileSync(path, 'x'), /not a plant store/],
  ['another SQLite database', (path) => execute(path, 'CREATE TABLE notes (text)'), /not a plant store/],
  [
    'another SQLite database with a version',
    (path) => execute(path, 'CREATE TABLE notes (text); PRAGMA user_version = 1'),
    /not a plant store/,
  ],
  [
    'another SQLite database with a higher version',
    (path) => execute(path, 'CREATE TABLE notes (text); PRAGMA user_version = 83'),
    /not a plant store/,
  ],
]

for (const [title, make, reason] of refused)
  test(`${title} is refused and left as it was`, async (t) => {
    const directory = createDirectory(t)
    const path = join(directory, 'plants.db')
    make(path)
    const before = hashFile(path)
    const { code, stdout, stderr } = await runCommand(['serve'], { PORT: '0', DATABASE_URL: `file:${path}` })
    t.same({ code, stdout }, { code: 1, stdout: '' })
    t.match(stderr, /^plant-store: [^\n]+\n$/)
    t.match(stderr, reason)
    t.equal(hashFile(path), before)
    t.same(readdirSync(directory), ['plants.db'])
  })

test('a database that lacks a table is refused in one line', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  await (await openStore(`file:${path}`, { logger: pino({ level: 'silent' }) })).close()
  execute(path, 'DROP TABLE plants')
  const { ended, output } = spawnCli(t, ['serve'], { PORT: '0', DATABASE_URL: `file:${path}` })
  t.match(await ended, { code: 1 })
  t.match(output(), { stdout: '', stderr: /^plant-store: no such table: plants\n$/ })
})

test('an empty file becomes a database', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  writeFileSync(path, '')
  const { url } = await startService(t, { DATABASE_URL: `file:${path}` })
  t.equal((await request(`${url}/plants`)).text, '[]')
})

test('directories on the way are made, for nobody else to read', async (t) => {
  const directory = createDirectory(t)
  const path = join(directory, 'a', 'b%20c', 'plants.db')
  const { url } = await startService(t, { DATABASE_URL: 'file:a/b%2520c/plants.db' }, directory)
  t.equal((await request(`${url}/plants`)).text, '[]')
  t.ok(statSync(path).isFile())
  if (process.platform !== 'win32') t.equal(statSync(join(directory, 'a')).mode & 0o777, 0o700)
})

test('a path where no file can be made is reported in one line', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'file'), '')
  mkdirSync(join(directory, 'directory'))
  for (const url of ['file:file/plants.db', 'file:directory', 'file::memory:', 'file:a%00b']) {
    const refused = await runCommand(['token', 'list'], { DATABASE_URL: url }, directory)
    t.match(refused, { code: 1, stderr: /^plant-store: [^\n]+\n$/ }, url)
  }
})

test('a directory that cannot be made is reported in one line', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'file'), '')
  const refused = await runCommand(
    ['serve'],
    { PORT: '0', DATABASE_URL: 'file:file/deep/plants.db' },
    directory,
  )
  t.match(refused, { code: 1, stderr: /^plant-store: cannot make the directory [^\n]+\n$/ })
})
