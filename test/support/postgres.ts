// A real PostgreSQL server for tests, on a free port of the loopback address.
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { copyFolder, createServerDirectory, own, run, startProgram } from './postgres-programs.ts'
import { descendantsOf, isRunning, signalAll } from './processes.ts'
import { until } from './until.ts'

/** `settings`: lines for postgresql.conf. */
export type ServerOptions = { port: number; settings?: string[] }

/** A role that needs a password, unlike the superuser `postgres`. */
export const passwordRole = 'gardener'

/** The directory that initdb made for the first server of this process. Copying it is ten times as fast. */
let made: string | undefined
/** Makes the next server belong to another cluster. */
export const forgetCluster = () => (made = undefined)

/** Represents a server that another process started. */
export class DatabaseServer {
  readonly port: number

  constructor(port: number) {
    this.port = port
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Runs a query on a new connection. */
  async query<R extends pg.QueryResultRow>(text: string, database?: string): Promise<R[]> {
    const client = new pg.Client({ connectionString: this.url(database) })
    await client.connect()
    try {
      return (await client.query<R>(text)).rows
    } finally {
      await client.end()
    }
  }
}

export class PostgresServer extends DatabaseServer {
  readonly directory = createServerDirectory()
  readonly data = join(this.directory, 'data')
  readonly #settings: string[]
  #pid = 0

  constructor({ port, settings = [] }: ServerOptions) {
    super(port)
    this.#settings = ['dynamic_shared_memory_type = mmap', ...settings]
    process.on('exit', this.destroy)
  }

  /** Creates the files of a new, empty server. */
  async init(): Promise<void> {
    if (made === undefined) {
      const data = join(createServerDirectory(), 'data')
      await run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'])
      process.on('exit', () => rmSync(dirname(data), { recursive: true, force: true }))
      made = data
    }
    copyFolder(made, this.data)
    this.write(
      'pg_hba.conf',
      `host all ${passwordRole} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust\n`,
    )
    this.configure()
  }

  /**
   * Copies the files of a running server for a base backup, without blocking this process. Replaying the log corrects
   * files that change meanwhile.
   */
  async copyFiles(from: PostgresServer): Promise<void> {
    rmSync(this.data, { recursive: true, force: true })
    const left = /^(postmaster\..*|.*\.signal|pg_wal\/.*|pg_replslot\/.*)$/
    this.#makeFolder('')
    const copied: Promise<void>[] = []
    for (const entry of readdirSync(from.data, { recursive: true, withFileTypes: true })) {
      const name = join(relative(from.data, entry.parentPath), entry.name)
      if (entry.isDirectory()) this.#makeFolder(name)
      else if (!left.test(name)) copied.push(this.#copyFile(name, from))
    }
    await Promise.all(copied)
    this.configure()
  }

  #makeFolder(name: string): void {
    mkdirSync(join(this.data, name), { recursive: true, mode: 0o700 })
    own(join(this.data, name))
  }

  async #copyFile(name: string, from: PostgresServer): Promise<void> {
    try {
      await copyFile(join(from.data, name), join(this.data, name))
      own(join(this.data, name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  /** Writes the settings. */
  configure(): void {
    const settings = [`port = ${this.port}`, "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''"]
    this.write('postgresql.conf', [...settings, ...this.#settings, ''].join('\n'))
  }

  /** Writes a file of the server. */
  write(name: string, text: string): void {
    const path = join(this.data, name)
    writeFileSync(path, text)
    own(path)
  }

  /** Resolves when the server accepts connections. */
  async start(): Promise<void> {
    // Registered at once, so that a test that is killed during the start leaves no server behind.
    const child = await startProgram('postgres', ['-D', this.data], join(this.directory, 'log'))
    this.#pid = child.pid as number
    await until(() => child.exitCode !== null || child.signalCode !== null || this.#isUp())
    if (!isRunning(this.#pid))
      throw new Error(`PostgreSQL did not start: ${readFileSync(join(this.directory, 'log'))}`)
  }

  /** The eighth line of the pid file shows whether it is ready (PostgreSQL's `src/include/utils/pidfile.h`). */
  #isUp(): boolean {
    const file = join(this.data, 'postmaster.pid')
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return Number(lines[0]) === this.#pid && /^(ready|standby) *$/.test(lines[7] ?? '')
  }

  async stop(): Promise<void> {
    await run('pg_ctl', ['stop', '-w', '-m', 'fast', '-D', this.data])
    this.#pid = 0
  }

  /** Keeps a cold backup of the stopped server. */
  save(): void {
    copyFolder(this.data, `${this.data}.saved`)
  }

  /** Replaces the files of the stopped server by the cold backup. */
  restore(): void {
    rmSync(this.data, { recursive: true })
    copyFolder(`${this.data}.saved`, this.data)
  }

  /** Promotes a standby. */
  async promote(): Promise<void> {
    await run('pg_ctl', ['promote', '-w', '-D', this.data])
  }

  /** Sends a signal to all processes of the server, which are in separate sessions. */
  signal(name: NodeJS.Signals): void {
    if (this.#pid !== 0) signalAll(this.#pid, name)
  }

  /** Stops the server as a failure of the machine would. */
  kill(): void {
    // Its shared memory, which nothing else would remove; the file has its id beside its key.
    const file = join(this.data, 'postmaster.pid')
    const [, id] = /^ *\d+ +(\d+) *$/m.exec(existsSync(file) ? readFileSync(file, 'utf8') : '') ?? []
    this.signal('SIGKILL')
    if (this.#pid !== 0 && id) spawnSync('ipcrm', ['-m', id])
    this.#pid = 0
  }

  /** Restarts the server as after a power failure: with only what is on the disk. */
  async crash(): Promise<void> {
    const pids = [this.#pid, ...descendantsOf(this.#pid)]
    this.kill()
    while (pids.some(isRunning)) await sleep(10)
    // If the dead process is not reaped, its pid still appears to be in use.
    rmSync(join(this.data, 'postmaster.pid'), { force: true })
    await this.start()
  }

  /** Kills the server and removes its files. */
  readonly destroy = () => {
    process.off('exit', this.destroy)
    this.kill()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Most tests do not depend on the disk; those in which servers fail keep fsync on. */
const quickSettings = ['fsync = off', 'autovacuum = off', 'max_connections = 400']

/** Starts a server, which the caller must destroy. */
export async function startServer(settings = quickSettings): Promise<PostgresServer> {
  const [port = 0] = await findPorts(1)
  const started = new PostgresServer({ port, settings })
  await started.init()
  await started.start()
  return started
}

/** Opens a session that ends with the test. */
export async function connect(t: Test, connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, application_name: 'test' })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** Below the range of outgoing connections, which could occupy the port of a server during its restart. */
const [firstPort, lastPort] = [10_000, 32_000]

/** Ports that are free now. */
export async function findPorts(count: number): Promise<number[]> {
  const servers: Server[] = []
  while (servers.length < count) {
    const server = createServer().listen(randomInt(firstPort, lastPort), '127.0.0.1')
    if (await once(server, 'listening').catch(() => false)) servers.push(server)
  }
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  return ports
}
