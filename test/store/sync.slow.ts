// A disk that fails to sync ends the process with one line, by a library that is preloaded: needs Linux and a C compiler.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { listNames, openFile } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { startAppender } from './appenders.ts'

const skip = skipWithout('cc')

/** Processes whose syncs of files with a suffix fail from `fail` to `mend`. */
function makeFailing(t: Test) {
  const directory = createDirectory(t)
  const [path, library, flag] = ['plants.db', 'failing-sync.so', 'flag'].map((name) =>
    join(directory, name),
  ) as [string, string, string]
  const source = fileURLToPath(new URL('./failing-sync.c', import.meta.url))
  const built = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], { encoding: 'utf8' })
  t.equal(built.status, 0, built.stderr)
  return {
    path,
    start: () => startAppender(t, path, { env: { LD_PRELOAD: library, FAULT_FLAG: flag } }),
    fail: (suffix: string) => writeFileSync(flag, suffix),
    mend: () => rmSync(flag),
  }
}

test('EIO from the sync of a commit ends the process, and what was acknowledged is there', {
  skip,
}, async (t) => {
  const { path, start, fail, mend } = makeFailing(t)
  const appender = await start()
  t.equal(await appender.add('a'), '1')
  fail('-wal')
  t.equal(await appender.add('b'), '1', 'its exit code')
  t.equal(await appender.end(), 1)
  const { level, msg, reason } = JSON.parse(appender.errors())
  t.match({ level, msg, reason }, { level: 60, msg: /^the disk failed to sync the database/, reason: path })
  mend()
  const next = await start()
  t.match(await next.add('c'), /^[23]$/)
  t.equal(await next.end(), 0)
  t.match((await listNames((await openFile(t, path)).store)).join(), /^a,(b,)?c$/)
})

for (const suffix of ['-wal', '.db'])
  test(`EIO from the sync of ${suffix} at a start ends it, and nothing is served`, { skip }, async (t) => {
    const { path, start, fail, mend } = makeFailing(t)
    const killed = await start()
    t.equal(await killed.add('a'), '1')
    process.kill(killed.pid, 'SIGKILL')
    await killed.end()
    fail(suffix)
    const refused = await start()
    t.equal(await refused.end(), 1)
    t.match(refused.errors(), /cannot open [^\n]*(EIO|disk I\/O error)/)
    mend()
    t.strictSame(await listNames((await openFile(t, path)).store), ['a'])
  })
