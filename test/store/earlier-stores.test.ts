// Stores that were made before 1.0.0 are refused by every command, and left as they were.
import { once } from 'node:events'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { version } from '../../src/store/sql/schema.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines } from '../support/engines.ts'
import type { OpenerData } from './opener.ts'

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
  for (const args of [
    ['serve'],
    ...tokenCommands,
    ...readers,
    ['copy', '--from', `file:${path}`, '--to', into],
    ['backup', join(directory, 'backup.db')],
    ['import', '-'],
  ]) {
    const { code, stderr } = await runCommand(args, { PORT: '0', DATABASE_URL: `file:${path}` })
    t.equal(code, 1, args.join(' '))
    t.match(stderr, /plant-store: [^\n]*export its plants with that code, then import them[^\n]*\n$/)
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
      t.match(stderr, /^plant-store: [^\n]*(no file|no plant store)[^\n]*\n$/, args.join(' '))
    }
  })

/** Opens files in a thread; resolves to the outcome for each. */
async function openInThread(workerData: OpenerData): Promise<string[]> {
  const outcomes: string[] = []
  const worker = new Worker(new URL('./opener.ts', import.meta.url), { workerData })
  worker.on('message', (outcome: string) => outcomes.push(outcome))
  await once(worker, 'exit')
  return outcomes
}

test('of many threads that open a new file at once, none is refused', async (t) => {
  const [threads, files] = [4, 30]
  const directory = createDirectory(t)
  const paths = Array.from({ length: files }, (_, n) => join(directory, `${n}.db`))
  const arrived = new Int32Array(new SharedArrayBuffer(files * Int32Array.BYTES_PER_ELEMENT))
  const workerData: OpenerData = { paths, arrived, threads }
  const outcomes = await Promise.all(Array.from({ length: threads }, () => openInThread(workerData)))
  t.strictSame(
    outcomes.flat().filter((outcome) => outcome !== 'open'),
    [],
  )
  t.equal(outcomes.flat().length, threads * files)
  for (const path of paths) {
    const db = new DatabaseSync(path, { readOnly: true })
    t.equal(db.prepare('PRAGMA user_version').get()?.user_version, version)
    db.close()
  }
})
