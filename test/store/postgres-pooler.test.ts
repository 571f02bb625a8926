// PgBouncer between the service and its server: refuses shared sessions before changing their settings, and accepts
// exclusive ones.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tap, { type Test } from 'tap'
import { findEngine, sharedServer } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { createServerDirectory, own, user } from '../support/postgres-programs.ts'
import { spawnProgram } from '../support/processes.ts'
import { add, listNames, open, openStore } from '../support/stores.ts'
import { findProgram, skipWithout } from '../support/tools.ts'

const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')
const skip = noPostgres || skipWithout('pgbouncer')

/** Starts PgBouncer before the shared server; resolves to a URL of a new database behind it. */
async function startPooler(t: Test, settings: string): Promise<{ url: string; direct: string }> {
  const direct = await postgres.createDatabase(t)
  const { port } = await sharedServer()
  const [ownPort] = await findPorts(1)
  const path = join(createServerDirectory(), 'pgbouncer.ini')
  writeFileSync(
    path,
    `[databases]
* = host=127.0.0.1 port=${port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
${settings}
`,
  )
  own(path)
  // Like PostgreSQL it does not run as root.
  await spawnProgram(t, String(findProgram('pgbouncer')), [path], user).logs(/process up/)
  return { url: direct.replace(`:${port}/`, `:${ownPort}/`), direct }
}

for (const mode of ['transaction', 'transaction\nserver_round_robin = 1', 'transaction\nmin_pool_size = 3'])
  tap.test(`refuses pool_mode = ${mode.replace('\n', ', ')}`, { skip }, async (t) => {
    const { url, direct } = await startPooler(t, `pool_mode = ${mode}`)
    const told = { message: /uses transaction pooling: set its pool_mode to session, or / }
    await t.rejects(open(t, url), told)
    const store = await open(t, direct)
    await t.rejects(openStore(url, { mode: 'read' }), told, 'also to read')
    const text = 'SELECT count(*)::int AS count FROM pg_tables'
    t.ok((await store.sql.select(text))[0]?.count, 'the server itself works')
  })

tap.test('accepts pool_mode = session', { skip }, async (t) => {
  const { url } = await startPooler(t, 'pool_mode = session')
  const store = await open(t, url)
  const names = Array.from({ length: 20 }, (_, n) => `${n}`)
  for (const name of names) {
    t.strictSame(await add(store, name), ['added'])
    await store.log.append([])
  }
  t.strictSame(await listNames(store), names)
  const reader = await openStore(url, { mode: 'read' })
  t.equal((await reader.log.head()).position, 20)
  await reader.close()
})
