// Stores that were made before 1.0.0 are refused by every command, and left as they were.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines } from '../support/engines.ts'

const earlier = fileURLToPath(new URL('../fixtures/plants-1.0.0.db', import.meta.url))

const tokenCommands = [
  ['token', 'create', '--name', 'new'],
  ['token', 'revoke', 'POhKNv1F'],
  ['token', 'rotate', 'POhKNv1F'],
  ['token', 'list'],
]
const readers = [['status'], ['export', '-'], ['verify']]

test('a file that was made before 1.0.0 is refused in one line, and left as it was', async (t) => {
  const directory = createDirectory(t)
  const path = join(directory, 'plants.db')
  copyFileSync(earlier, path)
  const before = readFileSync(path)
  const into = `file:${join(directory, 'copy.db')}`
  const input = join(createDirectory(t), 'plants.ndjson')
  writeFileSync(input, '{"name":"a","tag":""}\n')
  for (const args of [
    ['serve'],
    ...tokenCommands,
    ...readers,
    ['copy', '--from', `file:${path}`, '--to', into],
    ['backup', join(directory, 'backup.db')],
    ['import', input],
  ]) {
    const { code, stderr } = await runCommand(args, { PORT: '0', DATABASE_URL: `file:${path}` })
    t.equal(code, 1, args.join(' '))
    t.match(stderr, /plant-store: [^\n]*export it with that version, then import it[^\n]*\n$/)
    t.ok(readFileSync(path).equals(before))
  }
  // SQLite itself makes these for each reader.
  const own = readdirSync(directory).filter((name) => !/-wal$|-shm$/.test(name))
  t.same(own, ['plants.db'])
})

for (const engine of engines)
  test(`${engine.name}: commands other than serve, import, restore and copy --to make no database`, async (t) => {
    const url = await engine.createDatabase(t)
    for (const args of [...tokenCommands, ...readers]) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: url })
      t.same([code, stdout], [1, ''], args.join(' '))
      t.match(stderr, /^plant-store: [^\n]*(no file|not contain a plant store)[^\n]*\n$/, args.join(' '))
    }
  })
