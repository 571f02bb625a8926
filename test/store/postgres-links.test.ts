// What may be between the service and its server: TLS, as in the URLs of providers, and PgBouncer, whose shared
// sessions are refused.
import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import tap, { type Test } from 'tap'
import { findEngine, sharedServer } from '../support/engines.ts'
import { findPorts, PostgresServer, passwordRole } from '../support/postgres.ts'
import { createServerDirectory, own, user } from '../support/postgres-programs.ts'
import { spawnProgram } from '../support/processes.ts'
import { startService } from '../support/service.ts'
import { add, listNames, open, openStore } from '../support/stores.ts'
import { findProgram, skipWithout } from '../support/tools.ts'
import { listen } from '../support/wire.ts'

const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')
const skip = noPostgres || skipWithout('openssl')
const password = 'a secret'

/** Starts a server that has a certificate, and a role with a password; resolves to the URL of that role. */
async function start(): Promise<string> {
  const [port] = await findPorts(1)
  const settings = ['fsync = off', 'ssl = on', "ssl_cert_file = 'cert.pem'", "ssl_key_file = 'key.pem'"]
  const server = new PostgresServer({ port: port as number, settings })
  tap.teardown(() => server.destroy())
  await server.init()
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(server.data, name)) as [string, string]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert]
  execFileSync('openssl', [...args, ...subject], { stdio: 'ignore' })
  chmodSync(key, 0o600)
  for (const path of [key, cert]) own(path)
  await server.start()
  await server.query(`CREATE ROLE ${passwordRole} LOGIN PASSWORD '${password}'`)
  await server.query(`CREATE DATABASE plants OWNER ${passwordRole}`)
  const root = join(server.directory, 'root.pem')
  writeFileSync(root, execFileSync('openssl', ['x509', '-in', cert]))
  return `postgres://${passwordRole}:${encodeURIComponent(password)}@127.0.0.1:${port}/plants?sslrootcert=${root}`
}

/** Shared by all tests. */
const started = skip === false ? start() : undefined

tap.test('accepts the URL of a provider, without output of the driver', { skip }, async (t) => {
  const url = `${await started}&sslmode=require`
  const service = await startService(t, { DATABASE_URL: url })
  service.child.kill('SIGTERM')
  const { stderr } = await service.ended
  for (const line of stderr.trimEnd().split('\n')) t.doesNotThrow(() => JSON.parse(line), line)
})

tap.test('reports what is missing in a URL', { skip }, async (t) => {
  const url = String(await started)
  const strange = url.replace(/sslrootcert=[^&]*/, 'sslmode=require')
  const unknownAuthority = /not signed by a trusted authority: add sslrootcert=FILE .*self-signed/
  await t.rejects(openStore(strange), { message: unknownAuthority })
  const bare = url.replace(/:[^:]*@/, '@')
  await t.rejects(openStore(bare), { message: /requires a password, but the URL has none/ })
})

tap.test('reports a server message that pg cannot read, and does not crash', async (t) => {
  for (const [answer, message] of [
    // AuthenticationGSS, and a message that ends too soon.
    [[0x52, 0, 0, 0, 8, 0, 0, 0, 7], /Unknown authenticationOk message type 7/],
    [[0x52, 0, 0, 0, 1], /out of range/],
  ] as const) {
    const server = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.write(Buffer.from(answer)))
    })
    const url = `postgres://a:secret@127.0.0.1:${await listen(t, server)}/plants`
    await t.rejects(openStore(url, { mode: 'read' }), { message })
  }
})

const noPooler = noPostgres || skipWithout('pgbouncer')

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
  tap.test(`refuses pool_mode = ${mode.replace('\n', ', ')}`, { skip: noPooler }, async (t) => {
    const { url, direct } = await startPooler(t, `pool_mode = ${mode}`)
    const told = { message: /uses transaction pooling: set its pool_mode to session, or / }
    await t.rejects(open(t, url), told)
    const store = await open(t, direct)
    await t.rejects(openStore(url, { mode: 'read' }), told, 'also to read')
    const text = 'SELECT count(*)::int AS count FROM pg_tables'
    t.ok((await store.sql.select(text))[0]?.count, 'the server itself works')
  })

tap.test('accepts pool_mode = session', { skip: noPooler }, async (t) => {
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
