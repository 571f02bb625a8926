// Owners and modes of the files that the service and its commands create.
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { writeInput } from '../cli/imports.ts'
import { cli, runCommand, runShell } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { spawnProgram } from '../support/processes.ts'
import { startService } from '../support/service.ts'
import { add, openFile } from '../support/stores.ts'

const skip = process.platform === 'win32'

/** Creates a closed store at a path. */
async function makeStore(t: Test, path: string): Promise<void> {
  await (await openFile(t, path)).store.close()
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** The modes of the entries of a directory, in octal. */
function listModes(directory: string): Record<string, string> {
  const names = readdirSync(directory).toSorted()
  return Object.fromEntries(names.map((name) => [name, modeOf(join(directory, name))]))
}

test('creates a database for its user only, under any umask and in any directory', { skip }, async (t) => {
  const umask = process.umask(0)
  t.teardown(() => process.umask(umask))
  const directory = createDirectory(t)
  chmodSync(directory, 0o777)
  const { store } = await openFile(t, join(directory, 'made', 'plants.db'))
  await add(store, 'a')
  t.same(listModes(directory), { made: '700' })
  const files = { 'plants.db': '600', 'plants.db-shm': '600', 'plants.db-wal': '600' }
  t.same(listModes(join(directory, 'made')), files)

  await openFile(t, join(directory, 'plants.db'))
  t.same(listModes(directory), { made: '700', ...files })
  t.equal(modeOf(directory), '777', 'does not change an existing directory')
  symlinkSync(join(directory, 'other.db'), join(directory, 'link.db'))
  await openFile(t, join(directory, 'link.db'))
  t.equal(modeOf(join(directory, 'other.db')), '600', 'the target of a link')
})

test('creates backups and restores for their user only, and exports by the umask', { skip }, async (t) => {
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

const notRoot = process.geteuid?.() === 0 ? false : 'only root can change owners'

test('gives files made by root to the owner of their directory', { skip: notRoot }, async (t) => {
  const directory = createDirectory(t)
  chownSync(directory, 1234, 4321)
  const backup = join(createDirectory(t), 'plants.backup')
  await makeStore(t, backup)
  const DATABASE_URL = `file:${join(directory, 'plants.db')}`
  const into = (name: string) => join(directory, name)
  for (const args of [
    ['restore', backup, '--quiet'],
    ['export', into('a.ndjson')],
    ['backup', into('b.db')],
    ['copy', '--from', DATABASE_URL, '--to', `file:${into('new/copies/c.db')}`],
    ['import', writeInput(t, '{}\n'), '--skip-invalid', '--rejects', into('rejects')],
  ])
    t.match(await runCommand(args, { DATABASE_URL }), { code: args[0] === 'import' ? 1 : 0 }, args.join(' '))
  await startService(t, { DATABASE_URL, ACCESS_TOKENS: '', FIRST_TOKEN_FILE: into('token') })
  const made = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const own = made.filter((name) => !/-wal$|-shm$/.test(name)).sort()
  t.equal(own.join(' '), 'a.ndjson b.db new new/copies new/copies/c.db plants.db rejects token')
  for (const name of made) {
    const { uid, gid } = statSync(into(name))
    t.same([uid, gid], [1234, 4321], name)
  }
  for (const name of ['plants.db', 'b.db', 'new/copies/c.db']) t.equal(modeOf(into(name)), '600')
  // As root of a container may be.
  const powerless = ['--bounding-set=-chown', '--inh-caps=-chown', process.execPath, cli]
  const args = [...powerless, 'backup', into('c.db')]
  t.match(await spawnProgram(t, 'setpriv', args, { env: { DATABASE_URL } }).ended, { code: 0 })
})
