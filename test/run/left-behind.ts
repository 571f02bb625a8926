// A test file that is killed in the middle: it starts one of everything that tests start, says what that is, and waits.
import { once } from 'node:events'
import { dirname } from 'node:path'
import { test } from 'tap'
import { createDirectory, engines, sharedServer } from '../support/engines.ts'
import { startService } from '../support/service.ts'

export type Started = { url: string; directories: string[]; postmaster: number }

test('a test in the middle', async (t) => {
  const directory = createDirectory(t)
  for (const engine of engines) await engine.createDatabase(t)
  const { url } = await startService(t, {}, directory)
  const server = await sharedServer()
  const [row] = await server.query<{ pid: number; data: string }>(
    `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid,
      current_setting('data_directory') AS data`,
  )
  const started: Started = {
    url,
    directories: [directory, dirname(row?.data as string)],
    postmaster: row?.pid as number,
  }
  process.send?.(started)
  await once(process, 'message')
  t.pass('it was told to go on')
})
