// A disk that fails to sync, by a library that is preloaded: needs Linux and a C compiler.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { startAppender } from '../support/appenders.ts'
import { createDirectory } from '../support/engines.ts'
import { listNames, openFile } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'

const skip = skipWithout('cc')

/** A process whose syncs of files with a suffix fail from `fail` to `mend`. */
async function startFailing(t: Test) {
  const directory = createDirectory(t)
  const [path, library, flag] = ['plants.db', 'failing-sync.so', 'flag'].map((name) =>
    join(directory, name),
  ) as [string, string, string]
  const source = fileURLToPath(new URL('../support/failing-sync.c', import.meta.url))
  const built = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], { encoding: 'utf8' })
  t.equal(built.status, 0, built.stderr)
  const appender = await startAppender(t, path, { env: { LD_PRELOAD: library, FAULT_FLAG: flag } })
  const fail = (suffix: string) => writeFileSync(flag, suffix)
  const mend = () => rmSync(flag)
  t.equal(await appender.add('a'), '1')
  fail('-wal')
  t.equal(await appender.add('b'), 'unknown')
  return { path, appender, fail, mend }
}

test('EIO from the sync of the -wal: the outcome is unknown, and the file is reopened', {
  skip,
}, async (t) => {
  const { path, appender, mend } = await startFailing(t)
  t.equal(await appender.add('c'), 'nothing-added', 'as long as the -wal cannot be rewritten')
  mend()
  t.equal(await appender.add('d'), '2')
  t.equal(await appender.end(), 0)
  t.strictSame(await listNames((await openFile(t, path)).store), ['a', 'd'])
})

test('EIO from the sync of the -wal, then kill -9: the plant may be there, as was said', {
  skip,
}, async (t) => {
  const { path, appender } = await startFailing(t)
  process.kill(appender.pid, 'SIGKILL')
  t.equal(await appender.end(), 'SIGKILL')
  t.match((await listNames((await openFile(t, path)).store)).join(), /^a(,b)?$/)
})

test('EIO from the sync of the file: nothing is taken until a rewritten log is on the disk', {
  skip,
}, async (t) => {
  const { path, appender, fail, mend } = await startFailing(t)
  fail('.db')
  t.equal(await appender.add('c'), 'nothing-added')
  t.equal(await appender.add('c'), 'nothing-added')
  mend()
  t.equal(await appender.add('d'), '2')
  t.equal(await appender.end(), 0)
  t.strictSame(await listNames((await openFile(t, path)).store), ['a', 'd'])
})
