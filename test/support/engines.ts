// The engines that every behaviour is tested on.
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import tap, { type Test } from 'tap'
import { noteDirectory } from './leftovers.ts'
import { DatabaseServer, type PostgresServer, startServer } from './postgres.ts'

/** As in .taprc, for a file that `node` runs alone: tap itself would give all its tests 30 s together. */
if (!process.env.TAP_TIMEOUT) tap.setTimeout(300_000)

export type Engine = {
  name: 'SQLite' | 'PostgreSQL'
  /** The URL of a new, empty database, which goes when the test ends. */
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
    await server.query(`CREATE DATABASE ${name}`)
    return server.url(name)
  },
}

export const engines: Engine[] = process.env.TEST_ENGINE === sqlite.name ? [sqlite] : [sqlite, postgres]

/** An engine, for tests of it alone, which are left out where the run is without it. */
export function findEngine(name: Engine['name']): { engine: Engine; skip: string | false } {
  const engine = name === sqlite.name ? sqlite : postgres
  return { engine, skip: !engines.includes(engine) && `TEST_ENGINE is ${process.env.TEST_ENGINE}` }
}

let shared: Promise<DatabaseServer> | undefined

/** The server that all files of a run share; a file that runs alone has one of its own. It is to be left as it was. */
export function sharedServer(): Promise<DatabaseServer> {
  const port = Number(process.env.TEST_POSTGRES_PORT)
  shared ??= port ? Promise.resolve(new DatabaseServer(port)) : ownServer()
  return shared
}

/** A server for tests of this file that change it; it goes, with its databases, when the file is done. */
export async function ownServer(): Promise<PostgresServer> {
  const started = await startServer()
  tap.teardown(() => started.destroy())
  return started
}

/** A new directory, which goes when the test ends. */
export function createDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  noteDirectory(directory)
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}
