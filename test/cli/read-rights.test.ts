// Commands that only read need only read permission, and leave no files that the owner cannot use.
import { chmodSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { cli, runCommand } from '../support/commands.ts'
import { copy, fill, sumLog } from '../support/copies.ts'
import { createDirectory, sqlite, testPostgres } from '../support/engines.ts'
import { connect } from '../support/postgres.ts'
import { run as runProgram } from '../support/processes.ts'
import { open } from '../support/stores.ts'
import { skipUnlessOthersEnter } from '../support/tools.ts'

const notTwoUsers = skipUnlessOthersEnter()

async function openFilled(t: Test, url: string) {
  const store = await open(t, url)
  await fill(store, 30)
  return store
}

testPostgres('token list, verify, export, copy and status need only SELECT', async (t, url) => {
  const sum = await sumLog(await openFilled(t, url))
  const role = `reader_${Date.now()}`
  const client = await connect(t, url)
  await client.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`)
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
  t.match(await copy(DATABASE_URL, to), { code: 0, stdout: new RegExp(sum) })
  t.same(await tables(), before)
})

test('another user can read the files of a service, and creates none', { skip: notTwoUsers }, async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await openFilled(t, url)
  const directory = dirname(fileURLToPath(url))
  chmodSync(directory, 0o777)
  const link = join(createDirectory(t), 'link.db')
  chmodSync(dirname(link), 0o755)
  symlinkSync(fileURLToPath(url), link)
  const runAsOther = async (args: string[], { mode = 0o644, at = url } = {}) => {
    for (const name of readdirSync(directory)) chmodSync(join(directory, name), mode)
    // Without the instruments of tap, which that user cannot read.
    const user = ['-i', 'setpriv', '--reuid', '65534', '--clear-groups']
    const ran = await runProgram('env', [...user, process.execPath, cli, ...args, '--database-url', at])
    const strange = readdirSync(directory).filter((name) => statSync(join(directory, name)).uid !== 0)
    t.same(strange, [], `${args}: every file belongs to the owner`)
    return ran
  }
  const commands = [['token', 'list'], ['export', '--quiet'], ['status']]
  const read = { code: 0, stderr: /^(?!plant-store)/ }
  for (const command of commands) t.match(await runAsOther(command), read)
  t.match(await runAsOther(['status'], { at: `file:${link}` }), read, 'through a link')
  const unreadable = { code: 1, stdout: '', stderr: /^plant-store: cannot open \S+: EACCES[^\n]+\n$/ }
  for (const command of commands) t.match(await runAsOther(command, { mode: 0o600 }), unreadable)
  // SQLite would create files that the owner cannot use.
  await store.close()
  const refused = { code: 1, stdout: '', stderr: /belongs to another user; run this command as that user\n$/ }
  for (const command of [...commands, ['token', 'create', '--name', 'a']])
    t.match(await runAsOther(command), refused, 'without a service')
  writeFileSync(`${fileURLToPath(url)}-shm`, '')
  t.match(await runAsOther(['status']), refused, 'one of the files exists already')
})
