// The wall clock is set back and forth under a running service: what it promises in seconds stays seconds.
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createDirectory, sqlite } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'
import { request, spawnCli, startService } from '../support/service.ts'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000
/** Revocations and expiries take effect in this time. */
const promisedMs = 5000

/** A service on a database, and the hand that sets its clock. */
async function start(t: Test, database: string) {
  const file = join(createDirectory(t), 'offset')
  /** Whole at any moment: the service looks at it whenever it asks for the time. */
  const setClock = (offsetMs: number) => {
    writeFileSync(`${file}.new`, String(offsetMs))
    renameSync(`${file}.new`, file)
  }
  setClock(0)
  const { TEST_NODE_OPTIONS = '' } = process.env
  const service = await startService(t, {
    DATABASE_URL: database,
    LOG_LEVEL: 'error',
    TEST_CLOCK_FILE: file,
    NODE_OPTIONS: `${TEST_NODE_OPTIONS} --import=${import.meta.resolve('./wall-clock.ts')}`,
  })
  return { url: service.url, setClock }
}

async function runToken(t: Test, database: string, args: string[]): Promise<string> {
  const { ended, output } = spawnCli(t, ['token', ...args], { DATABASE_URL: database })
  t.match(await ended, { code: 0 })
  return output().stdout.trim()
}

function ask(url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return request(`${url}/plants?limit=0`, { headers }).then(({ status }) => status)
}

/** Asks until the answer is this one. */
async function becomes(t: Test, url: string, token: string, status: number): Promise<void> {
  const startMs = performance.now()
  await until(async () => (await ask(url, token)) === status)
  assertWithin(t, performance.now() - startMs, promisedMs, `${status}`)
}

test('a revoked token is refused in time, also when the clock was set back', async (t) => {
  const database = await sqlite.createDatabase(t)
  const { url, setClock } = await start(t, database)
  const token = await runToken(t, database, ['create', '--name', 'a'])
  t.equal(await ask(url, token), 200)
  setClock(-hourMs)
  await runToken(t, database, ['revoke', token.slice(6, 14)])
  await becomes(t, url, token, 401)
})

test('an expired token is valid again soon after the clock is corrected', async (t) => {
  const database = await sqlite.createDatabase(t)
  const { url, setClock } = await start(t, database)
  const token = await runToken(t, database, ['create', '--name', 'a', '--expires', '30m'])
  t.equal(await ask(url, token), 200)
  setClock(hourMs)
  await becomes(t, url, token, 401)
  setClock(0)
  await becomes(t, url, token, 200)
})
