// Commands that only read need no more than the right to, and leave nothing behind that the owner cannot use.
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type Test, test } from 'tap'
import { cli, runCommand } from '../support/commands.ts'
import { fill, sumLog } from '../support/copies.ts'
import { type Engine, findEngine, sqlite } from '../support/engines.ts'
import { run as runProgram } from '../support/processes.ts'
import { open } from '../support/stores.ts'
import { skipUnlessOthersEnter } from '../support/tools.ts'

const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')

async function setUp(t: Test, engine: Engine) {
  const url = await engine.createDatabase(t)
  const store = await open(t, url)
  await fill(store, 30)
  return { url, store, sum: await sumLog(store) }
}

test('a role of PostgreSQL that may only select lists tokens, verifies, exports, copies and shows the status', {
  skip: noPostgres,
}, async (t) => {
  const { url, sum } = await setUp(t, postgres)
  const role = `reader_${Date.now()}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`)
  t.teardown(async () => {
    await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    await client.end()
  })
  const DATABASE_URL = url.replace('postgres@', `${role}@`)
  t.not(DATABASE_URL, url)
  const tables = async () =>
    (await client.query("SELECT relname FROM pg_class WHERE relkind IN ('r', 'i') ORDER BY 1")).rows
  const before = await tables()
  t.match(await runCommand(['token', 'list'], { DATABASE_URL }), { code: 0, stdout: /gardener 0/ })
  t.match(await runCommand(['verify'], { DATABASE_URL }), { code: 0, stdout: new RegExp(`SHA-256 ${sum}`) })
  t.match(await runCommand(['export', '--quiet'], { DATABASE_URL }), { code: 0, stdout: /Monstera/ })
  t.match(await runCommand(['status'], { DATABASE_URL }), { code: 0, stdout: /30 plants/ })
  const to = await sqlite.createDatabase(t)
  t.match(await runCommand(['copy', '--from', DATABASE_URL, '--to', to]), {
    code: 0,
    stdout: new RegExp(sum),
  })
  t.same(await tables(), before)
})

test('another user who may read the files of SQLite does so beside a service, and makes no file', {
  skip: skipUnlessOthersEnter(),
}, async (t) => {
  const { url, store } = await setUp(t, sqlite)
  const directory = dirname(fileURLToPath(url))
  chmodSync(directory, 0o777)
  const readAsOther = async (args: string[], mode = 0o644) => {
    for (const name of readdirSync(directory)) chmodSync(join(directory, name), mode)
    // Without the tests' instruments, which that user may not use.
    const user = ['-i', 'setpriv', '--reuid', '65534', '--clear-groups']
    const ran = await runProgram('env', [...user, process.execPath, cli, ...args, '--database-url', url])
    const strange = readdirSync(directory).filter((name) => statSync(join(directory, name)).uid !== 0)
    t.same(strange, [], `${args}: every file is the owner's`)
    return ran
  }
  const commands = [['token', 'list'], ['export', '--quiet'], ['status']]
  for (const command of commands) t.match(await readAsOther(command), { code: 0, stderr: /^(?!plant-store)/ })
  const unreadable = { code: 1, stdout: '', stderr: /^plant-store: cannot open \S+: EACCES[^\n]+\n$/ }
  for (const command of commands) t.match(await readAsOther(command, 0o600), unreadable)
  // SQLite would make files that the owner cannot use.
  await store.close()
  const told = { code: 1, stdout: '', stderr: /belongs to another user; run this command as that user\n$/ }
  for (const command of commands) t.match(await readAsOther(command), told, 'at rest')
  writeFileSync(`${fileURLToPath(url)}-shm`, '')
  t.match(await readAsOther(['status']), told, 'one of the files that it would make is there')
})
