// A test file that is killed in the middle: it starts one of everything that tests start, says what that is, and waits.
import { once } from 'node:events'
import { dirname } from 'node:path'
import { test } from 'tap'
import { createDirectory, engines, sharedServer } from '../support/engines.ts'
import { startService } from '../support/service.ts'

export type Started = { urls: string[]; directories: string[]; postmaster: number }

test('a test in the middle', async (t) => {
  const directory = createDirectory(t)
  const urls: string[] = []
  for (const engine of engines) {
    const DATABASE_URL = await engine.createDatabase(t)
    urls.push((await startService(t, { DATABASE_URL }, directory)).url)
  }
  const server = await sharedServer()
  const [row] = await server.query<{ pid: number; data: string }>(
    `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid,
      current_setting('data_directory') AS data`,
  )
  const started: Started = {
    urls,
    directories: [directory, dirname(row?.data as string)],
    postmaster: row?.pid as number,
  }
  process.send?.(started)
  await once(process, 'message')
  t.pass('it was told to go on')
})
