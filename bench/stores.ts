// The stores and files that are measured: databases with plants in them, and a PostgreSQL server.
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pino from 'pino'
import { quoteCell } from '../src/maintenance/export/formats.ts'
import { openStore } from '../src/store/engines.ts'
import { findPorts, PostgresServer } from '../test/support/postgres.ts'
import type { Bench } from './bench.ts'
import { makePlant } from './load/job.ts'
import { claimed } from './processes.ts'

const batchPlants = 20_000

export type InputFormat = 'ndjson' | 'csv'

/** Fills a new store through its log, without HTTP. */
export async function fillStore(bench: Bench, url: string, count: number): Promise<void> {
  const store = await openStore(url, { logger: pino({ level: 'error' }, pino.destination(2)) })
  for (const plants of inBatches(count)) {
    await store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
    bench.progress.step(0, `filling a store with ${count} plants`)
  }
  await store.close()
}

/** Makes a SQLite store with some plants; resolves to its URL. Of all but the largest a copy is kept to be made again. */
export async function makeStore(bench: Bench, count: number): Promise<string> {
  const url = pathToFileURL(bench.newFile('plants.db')).href
  if (count > bench.options.listPlants) {
    await fillStore(bench, url, count)
    return url
  }
  // A store that is closed has all its plants in the one file.
  copyFileSync(fileURLToPath(await makeIdleStore(bench, count)), fileURLToPath(url))
  return url
}

/** A SQLite store that is made once, for commands that leave it as it is. */
export async function makeIdleStore(bench: Bench, count: number): Promise<string> {
  const fill = (path: string) => fillStore(bench, pathToFileURL(path).href, count)
  return pathToFileURL(await bench.once(`${count}.db`, fill)).href
}

/** A file to import, made once. */
export function makeInput(bench: Bench, format: InputFormat, count: number): Promise<string> {
  return bench.once(`${count}.${format}`, (path) => {
    writeFileSync(path, format === 'csv' ? 'name,tag\n' : '')
    const write = ({ name, tag }: Plant) => `${quoteCell(name)},${quoteCell(tag)}\n`
    const toLine = format === 'csv' ? write : (plant: Plant) => `${JSON.stringify(plant)}\n`
    for (const plants of inBatches(count)) appendFileSync(path, plants.map(toLine).join(''))
  })
}

/** A PostgreSQL server of the bench's own, in its standard configuration; it goes when the bench ends. */
export async function startPostgres(): Promise<PostgresServer> {
  const [port] = await findPorts(1)
  const server = new PostgresServer({ port: port as number })
  await server.init()
  await server.start()
  claimed.add(Number.parseInt(readFileSync(join(server.data, 'postmaster.pid'), 'utf8'), 10))
  return server
}

type Plant = ReturnType<typeof makePlant>

function* inBatches(count: number): Generator<Plant[]> {
  for (let from = 0; from < count; from += batchPlants) {
    const length = Math.min(batchPlants, count - from)
    yield Array.from({ length }, (_, n) => makePlant(from + n))
  }
}
