// A database that is not ours, or newer than we are, is refused in one line and left as it was.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'

const file = (bytes: string) => (path: string) => writeFileSync(path, bytes)
const database = (statements: string) => (path: string) => {
  const made = new DatabaseSync(path)
  made.exec(statements)
  made.close()
}
const refused: [title: string, make: (path: string) => void, reason: RegExp][] = [
  ['text', file('This is no database.\n'.repeat(1000)), /not a database/],
  ['one byte', file('x'), /not a plant store/],
  ['another SQLite database', database('CREATE TABLE notes (text)'), /not a plant store/],
  [
    'another SQLite database with a version',
    database('CREATE TABLE notes (text); PRAGMA user_version = 83'),
    /not a plant store/,
  ],
]

test('what is no plant store is refused and left as it was', async (t) => {
  for (const [title, make, reason] of refused) {
    const directory = createDirectory(t)
    const path = join(directory, 'plants.db')
    make(path)
    const before = readFileSync(path)
    for (const command of ['serve', 'export']) {
      const { code, stdout, stderr } = await runCommand([command], {
        PORT: '0',
        DATABASE_URL: `file:${path}`,
      })
      t.same({ code, stdout }, { code: 1, stdout: '' }, title)
      t.match(stderr, /^plant-store: [^\n]+\n$/)
      t.match(stderr, reason)
    }
    t.ok(readFileSync(path).equals(before), title)
    t.same(readdirSync(directory), ['plants.db'])
  }
})

test('an empty file becomes a database, and directories on the way are made for nobody else', async (t) => {
  const directory = createDirectory(t)
  const empty = join(directory, 'plants.db')
  writeFileSync(empty, '')
  for (const url of [`file:${empty}`, `file:${directory}/a/b%2520c/plants.db`]) {
    const app = await startApp(t, url)
    t.equal((await request(`${app.url}/plants`)).text, '[]')
  }
  t.ok(statSync(join(directory, 'a', 'b%20c', 'plants.db')).isFile())
  if (process.platform !== 'win32') t.equal(statSync(join(directory, 'a')).mode & 0o777, 0o700)
})

test('a path where no file can be made is reported in one line', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'file'), '')
  mkdirSync(join(directory, 'directory'))
  const urls = ['file:file/plants.db', 'file:directory', 'file::memory:', 'file:a%00b', 'file:file/deep/a.db']
  for (const DATABASE_URL of urls) {
    const refused = await runCommand(['serve'], { PORT: '0', DATABASE_URL }, directory)
    t.match(refused, { code: 1, stderr: /^plant-store: [^\n]+\n$/ }, DATABASE_URL)
  }
})
