// Who may read what the service and its commands leave on the disk.
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import type { Store } from '../../src/store/engine.ts'
import { runCommand, runShell } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { add, openFile, openStore } from '../support/stores.ts'
import { letOthersEnd, skipUnlessOthersEnter } from '../support/tools.ts'

const isWindows = process.platform === 'win32'

const openReader = (path: string) => openStore(`file:${path}`, { mode: 'read' })
const count = async ({ log }: Store) => (await log.head()).position

/** A store that is closed, at a path. */
async function makeStore(t: Test, path: string): Promise<void> {
  await (await openFile(t, path)).store.close()
}

/** The modes of all that is in a directory, in octal. */
function listModes(directory: string): Record<string, string> {
  const names = readdirSync(directory).toSorted()
  return Object.fromEntries(names.map((name) => [name, modeOf(join(directory, name))]))
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

/** A directory in a process whose umask takes nothing from anybody. */
function createOpenDirectory(t: Test): string {
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  return createDirectory(t)
}

test('a new database is for its user alone, under any umask and in any directory', {
  skip: isWindows,
}, async (t) => {
  const directory = createOpenDirectory(t)
  chmodSync(directory, 0o777)
  const { store } = await openFile(t, join(directory, 'made', 'plants.db'))
  await add(store, 'a')
  t.same(listModes(directory), { made: '700' })
  t.same(listModes(join(directory, 'made')), {
    'plants.db': '600',
    'plants.db-shm': '600',
    'plants.db-wal': '600',
  })

  await openFile(t, join(directory, 'plants.db'))
  const files = { 'plants.db': '600', 'plants.db-shm': '600', 'plants.db-wal': '600' }
  t.same(listModes(directory), { made: '700', ...files })
  t.equal(modeOf(directory), '777', 'a directory that was there stays as it was')
  symlinkSync(join(directory, 'other.db'), join(directory, 'link.db'))
  await openFile(t, join(directory, 'link.db'))
  t.equal(modeOf(join(directory, 'other.db')), '600', 'where a link leads')
})

test('backups and restored databases are for their user alone; an export is as the umask says', {
  skip: isWindows,
}, async (t) => {
  const directory = createDirectory(t)
  mkdirSync(join(directory, 'data'))
  await makeStore(t, join(directory, 'data', 'plants.db'))
  for (const command of [
    'backup plants.backup --quiet',
    'restore plants.backup --database-url file:new/plants.db --quiet',
    'export plants.json --quiet',
  ])
    t.match(await runShell(t, `umask 0; plant-store ${command}`, {}, directory), { code: 0 }, command)
  const { 'plants.backup': backup, new: made, 'plants.json': exported } = listModes(directory)
  t.same({ backup, made, exported }, { backup: '600', made: '700', exported: '666' })
  t.same(listModes(join(directory, 'new')), { 'plants.db': '600' })
})

test('what root makes belongs to the owner of the directory', {
  skip: process.geteuid?.() === 0 ? false : 'only root can give files away',
}, async (t) => {
  const directory = createDirectory(t)
  chownSync(directory, 1234, 4321)
  const path = join(directory, 'plants.db')
  // A copy: reading a file with a write-ahead log leaves files beside it.
  const backup = join(createDirectory(t), 'plants.backup')
  await makeStore(t, backup)
  const input = join(createDirectory(t), 'input')
  writeFileSync(input, '{}\n')
  const DATABASE_URL = `file:${path}`
  const into = (name: string) => join(directory, name)
  for (const args of [
    ['restore', backup, '--quiet'],
    ['export', into('a.ndjson')],
    ['backup', into('b.db')],
    ['copy', '--from', DATABASE_URL, '--to', `file:${into('new/copies/c.db')}`],
    ['openapi', '-o', into('o.yaml')],
    ['import', input, '--skip-invalid', '--rejects', into('rejects')],
  ])
    t.match(await runCommand(args, { DATABASE_URL }), { code: args[0] === 'import' ? 1 : 0 }, args.join(' '))
  const made = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const own = made.filter((name) => !/-wal$|-shm$/.test(name)).sort()
  t.strictSame(own, [
    'a.ndjson',
    'b.db',
    'new',
    'new/copies',
    'new/copies/c.db',
    'o.yaml',
    'plants.db',
    'rejects',
  ])
  for (const name of made) {
    const { uid, gid } = statSync(into(name))
    t.same([uid, gid], [1234, 4321], name)
  }
  for (const name of ['plants.db', 'b.db', 'new/copies/c.db'])
    t.equal((statSync(into(name)).mode & 0o777).toString(8), '600')
})

test('a user other than the owner leaves nothing behind that the owner cannot use', {
  skip: skipUnlessOthersEnter(),
}, async (t) => {
  const directory = createDirectory(t)
  const path = join(directory, 'plants.db')
  const { store } = await openFile(t, path)
  await add(store, 'a')
  await store.close()
  chmodSync(directory, 0o777)
  chmodSync(path, 0o644)
  letOthersEnd()
  process.seteuid?.(65_534)
  t.teardown(() => process.seteuid?.(0))
  const refused = { message: /belongs to another user; run this command as that user/ }
  await t.rejects(openReader(path), refused, 'to read')
  await t.rejects(openFile(t, path), refused, 'to write')
  t.same(listModes(directory), { 'plants.db': '644' })
  process.seteuid?.(0)
  const link = join(createDirectory(t), 'link.db')
  chmodSync(dirname(link), 0o755)
  symlinkSync(path, link)
  const service = await openFile(t, path)
  await add(service.store, 'b')
  chmodSync(directory, 0o777)
  for (const ending of ['', '-wal', '-shm']) chmodSync(path + ending, 0o666)
  process.seteuid?.(65_534)
  for (const name of [path, link]) {
    const beside = await openReader(name)
    t.equal(await count(beside), 2, 'beside a service there is nothing to be made')
    await beside.close()
  }
  process.seteuid?.(0)
  await service.store.close()
  t.equal((await openFile(t, path)).store.id, store.id)
})
