// The engines that every behaviour is tested on.
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import tap, { type Test } from 'tap'
import { noteDirectory } from './leftovers.ts'
import { findPorts, PostgresServer } from './postgres.ts'

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

/** Threads differ in SQLite; on PostgreSQL each is what a replica is. */
export const engines: Engine[] = process.env.TEST_THREADS ? [sqlite] : [sqlite, postgres]

let shared: Promise<PostgresServer> | undefined

/** One server for all tests of a file; it goes, with its databases, when the file is done. */
export function sharedServer(): Promise<PostgresServer> {
  shared ??= startServer()
  return shared
}

async function startServer(): Promise<PostgresServer> {
  const [port] = await findPorts(1)
  // What these tests show does not hang on the disk; those in which servers fail keep fsync on.
  const started = new PostgresServer({
    port: port as number,
    settings: ['fsync = off', 'max_connections = 200'],
  })
  tap.teardown(() => started.destroy())
  await started.init()
  await started.start()
  return started
}

/** A new directory, which goes when the test ends. */
export function createDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  noteDirectory(directory)
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}
