// The databases of the service: SQLite files with plants in them, and a PostgreSQL server.
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findPorts, PostgresServer } from '../test/support/postgres.ts'
import type { Bench } from './bench.ts'
import { fillStore } from './fill.ts'
import { claim } from './processes.ts'

/** Makes a SQLite store with some plants; resolves to its URL. Of those that are asked for again a copy is kept. */
export async function makeStore(bench: Bench, count: number): Promise<string> {
  const url = pathToFileURL(bench.newFile('plants.db')).href
  if (count > bench.options.listPlants) {
    await fillStore(url, count, (done) => bench.progress.step(0, `${done} of ${count} plants`))
    return url
  }
  const filled = bench.filledStores.get(count) ?? (await fill(bench, count))
  bench.filledStores.set(count, filled)
  copyFileSync(fileURLToPath(filled), fileURLToPath(url))
  return url
}

/** A store that is closed has all its plants in the one file. */
async function fill(bench: Bench, count: number): Promise<string> {
  const url = pathToFileURL(bench.newFile('filled.db')).href
  await fillStore(url, count, (done) => bench.progress.step(0, `${done} of ${count} plants`))
  return url
}

/** A PostgreSQL server of the bench's own, in its standard configuration; it goes when the bench ends. */
export async function startPostgres(): Promise<PostgresServer> {
  const [port] = await findPorts(1)
  const server = new PostgresServer({ port: port as number })
  await server.init()
  await server.start()
  claim(Number.parseInt(readFileSync(join(server.data, 'postmaster.pid'), 'utf8'), 10))
  return server
}
