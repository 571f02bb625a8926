// Real file systems that become full or read-only. Requires root and mount(8).
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { introduceTokens } from '../../src/tokens/first-token.ts'
import { spawnCli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { add, listNames, openFile, openStore, unavailable } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { addMany, startAppender } from './appenders.ts'

/** The `skip` option: tries to mount something, and returns the reason of a failure. */
function findSkip(): string | false {
  const missing = skipWithout('unshare', 'mke2fs')
  if (missing !== false) return missing
  if (process.getuid?.() !== 0) return 'only root can mount'
  const probe = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { encoding: 'utf8' })
  return probe.status === 0 ? false : `no mounts here: ${probe.error?.message ?? probe.stderr}`
}

const skip = findSkip()

/** Mounts a directory until the test ends. */
function mount(t: Test, ...options: string[]): string {
  const directory = join(createDirectory(t), 'mounted')
  mkdirSync(directory)
  execFileSync('mount', [...options, directory])
  t.teardown(() => execFileSync('umount', ['-l', directory]))
  return directory
}

test('acknowledges nothing on a full disk, and continues when there is room', { skip }, async (t) => {
  const directory = mount(t, '-t', 'tmpfs', '-o', 'size=1m', 'none')
  const [path, ballast] = [join(directory, 'plants.db'), join(directory, 'ballast')]
  const appender = await startAppender(t, path)
  t.equal(await appender.add('a'), '1')
  spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096'])
  const { added, answers } = await addMany(appender, 50)
  t.strictSame([...new Set(answers)], ['nothing-added'])
  rmSync(ballast)
  t.equal(await appender.add('last'), `${added.length + 2}`)
  t.equal(await appender.end(), 0)
  t.strictSame(await listNames((await openFile(t, path)).store), ['a', ...added, 'last'])
})

test('starts on a full disk and lists its log, but adds nothing until there is room', { skip }, async (t) => {
  const directory = mount(t, '-t', 'tmpfs', '-o', 'size=1m', 'none')
  const path = join(directory, 'plants.db')
  const appender = await startAppender(t, path)
  const { added } = await addMany(appender, 60)
  process.kill(appender.pid, 'SIGKILL')
  await appender.end()
  const ballast = join(directory, 'ballast')
  spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096'])
  const { store } = await openFile(t, path)
  t.strictSame(await listNames(store), added)
  await t.rejects(add(store, 'more'), unavailable('nothing-added'))
  rmSync(ballast)
  await add(store, 'more')
  t.strictSame(await listNames(store), [...added, 'more'])
})

test('a process that waits for room writes back no log that it no longer shares', { skip }, async (t) => {
  const directory = mount(t, '-t', 'tmpfs', '-o', 'size=1m', 'none')
  const [path, ballast] = [join(directory, 'plants.db'), join(directory, 'ballast')]
  const killed = await startAppender(t, path)
  const { added } = await addMany(killed, 30)
  process.kill(killed.pid, 'SIGKILL')
  await killed.end()
  spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096'])
  const old = await startAppender(t, path)
  for (const file of [`${path}-shm`, ballast]) rmSync(file)
  const fresh = await startAppender(t, path)
  const more = await addMany(fresh, 60)
  t.equal(await old.add('more'), 'nothing-added')
  t.equal(await fresh.add('last'), '91')
  for (const one of [old, fresh]) t.equal(await one.end(), 0)
  t.strictSame(await listNames((await openFile(t, path)).store), [...added, ...more.added, 'last'])
})

test('leaves no file of a first token that cannot be written', { skip }, async (t) => {
  const directory = mount(t, '-t', 'tmpfs', '-o', 'size=64k', 'none')
  const file = join(directory, 'token')
  spawnSync('dd', ['if=/dev/zero', `of=${join(directory, 'ballast')}`, 'bs=4096'])
  const { store } = await openFile(t, join(createDirectory(t), 'plants.db'))
  const introduction = introduceTokens(store.tokens, { file, plantsUrl: 'http://127.0.0.1:3000/plants' })
  const message = /^FIRST_TOKEN_FILE cannot be written, so no token was created: ENOSPC/
  await t.rejects(introduction, { message })
  t.notOk(existsSync(file))
})

test('acknowledges and loses no plant when the file system turns read-only', { skip }, async (t) => {
  const image = join(createDirectory(t), 'image')
  execFileSync('truncate', ['-s', '16m', image])
  execFileSync('mke2fs', ['-q', '-t', 'ext4', image])
  const directory = mount(t, '-o', 'loop', image)
  const path = join(directory, 'plants.db')
  const appender = await startAppender(t, path)
  t.equal(await appender.add('a'), '1')
  // As the kernel does after a disk error.
  execFileSync('mount', ['-o', 'remount,abort', directory])
  // Either the sync fails, which ends the process with code 1, or the write fails.
  for (const name of ['b', 'c']) t.match(await appender.add(name), /^(unknown|nothing-added|1)$/)
  t.match(String(await appender.end()), /^[01]$/)
  const { stdout } = await spawnCli(t, ['export', '-'], { DATABASE_URL: `file:${path}` }).ended
  t.match(stdout, /^{"name":"a","tag":""}\n/, 'can still be read')
  await t.rejects(openStore(`file:${path}`), /cannot open/)
  execFileSync('umount', [directory])
  execFileSync('mount', ['-o', 'loop', image, directory])
  t.match(await listNames((await openFile(t, path)).store), ['a'])
})
