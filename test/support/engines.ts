// The engines that every behaviour is tested on.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import tap, { type Test } from 'tap'
import { DatabaseServer, type PostgresServer, startServer } from './postgres.ts'
import { noteDirectory } from './processes.ts'
import { until } from './until.ts'

/** The time-out of a file that `node` runs without .taprc; by default, tap would allow 30 s for all its tests. */
if (!process.env.TAP_TIMEOUT) tap.setTimeout(300_000)

export type Engine = {
  name: 'SQLite' | 'PostgreSQL'
  /** Returns the URL of a new, empty database, which is removed when the test ends. */
  createDatabase(t: Test): Promise<string>
}

export const sqlite: Engine = {
  name: 'SQLite',
  async createDatabase(t) {
    return pathToFileURL(join(createDirectory(t), 'plants.db')).href
  },
}

const postgres: Engine = {
  name: 'PostgreSQL',
  async createDatabase() {
    const server = await sharedServer()
    const name = `test_${randomBytes(8).toString('hex')}`
    // Half the processor time of the default, wal_log.
    await server.query(`CREATE DATABASE ${name} STRATEGY file_copy`)
    return server.url(name)
  },
}

export const engines: Engine[] = process.env.TEST_ENGINE === sqlite.name ? [sqlite] : [sqlite, postgres]

/** Finds an engine for tests that need it; `skip` is set if the run excludes it. */
export function findEngine(name: Engine['name']): { engine: Engine; skip: string | false } {
  const engine = name === sqlite.name ? sqlite : postgres
  return { engine, skip: !engines.includes(engine) && `TEST_ENGINE is ${process.env.TEST_ENGINE}` }
}

/** Defines a test that needs PostgreSQL, and is skipped if the run excludes it. `url`: of a new, empty database. */
export function testPostgres(title: string, body: (t: Test, url: string) => unknown): void {
  const { engine, skip } = findEngine('PostgreSQL')
  tap.test(title, { skip }, async (t) => body(t, await engine.createDatabase(t)))
}

let shared: Promise<DatabaseServer> | undefined

/** The server that all files of a run share; do not change it. A file that `node` runs directly starts its own. */
export function sharedServer(): Promise<DatabaseServer> {
  shared ??= process.env.TAP_CHILD_ID === undefined ? ownServer() : findShared()
  return shared
}

/** Finds the server of this run of tap (the parent process), and starts it if no other file has. */
async function findShared(): Promise<DatabaseServer> {
  const folder = join(tmpdir(), `plant-store-run-${process.ppid}`)
  if (mkdirSync(folder, { recursive: true }) !== undefined) startShared(folder)
  const file = join(folder, 'port')
  await until(() => existsSync(file), { found: () => readFileSync(join(folder, 'log'), 'utf8') })
  return new DatabaseServer(Number(readFileSync(file, 'utf8')))
}

function startShared(folder: string): void {
  const script = fileURLToPath(new URL('shared-postgres.ts', import.meta.url))
  // Out of reach of signals to the process group of the tests, and without tap's instruments.
  const { PATH, TMPDIR, TEST_POSTGRES_BIN } = process.env
  const env = { PATH, TMPDIR, TEST_POSTGRES_BIN }
  const args = [script, folder, String(process.ppid)]
  // Without the output of this process, because tap waits until that is closed.
  const log = openSync(join(folder, 'log'), 'w')
  spawn(process.execPath, args, { env, detached: true, stdio: ['ignore', log, log] }).unref()
  closeSync(log)
}

/** Starts a server for tests that change it; it is removed after the last test of the file. */
export async function ownServer(): Promise<PostgresServer> {
  const started = await startServer()
  tap.teardown(() => started.destroy())
  return started
}

/** Creates a directory that is removed when the test ends. */
export function createDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  noteDirectory(directory)
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}
