// The measured servers, and the stores and files that they need.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pino from 'pino'
import { engineOf } from '../src/store/engines.ts'
import { type PostgresServer, startServer as startPostgres } from '../test/support/postgres.ts'
import { makePlant } from './generate.ts'
import { runCommand, type Server, startServer } from './processes.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'bin/plant-store.js')
const token = 'a-token-for-the-bench'
export const headers = { Authorization: `Bearer ${token}` }
/** The default number of plants in a store, and the size of a batch. */
const batchPlants = 1000

// In data/, so that the benchmark uses the same disk as the service.
mkdirSync(join(root, 'data'), { recursive: true })
const directory = mkdtempSync(join(root, 'data', 'bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
let files = 0
export const newFile = (name: string) => join(directory, `${files++}-${name}`)

let postgres: Promise<PostgresServer> | undefined

export type Engine = 'SQLite' | 'PostgreSQL'

/** Creates a database with some plants. Resolves to its URL. */
export async function makeStore(engine: Engine, plants: number): Promise<string> {
  const url = engine === 'SQLite' ? pathToFileURL(newFile('plants.db')).href : await createDatabase()
  const logger = pino({ level: 'error' })
  const store = await engineOf(url).open(url, { logger, mode: 'write', create: true })
  for (let from = 0; from < plants; from += batchPlants)
    await store.log.append(Array.from({ length: batchPlants }, (_, n) => makeEntry(from + n)))
  await store.close()
  return url
}

const makeEntry = (n: number) => ({ item: JSON.stringify(makePlant(n)), id: undefined })

/** A server in its standard configuration: with fsync. */
async function createDatabase(): Promise<string> {
  postgres ??= startPostgres([])
  const server = await postgres
  const name = `bench_${files++}`
  await server.query(`CREATE DATABASE ${name}`)
  return server.url(name)
}

/** Plant Store as `npm start` starts it. */
export async function startOurs(engine: Engine, plants = batchPlants, url?: string): Promise<Server> {
  const name = engine === 'SQLite' ? 'Plant Store' : 'Plant Store on PostgreSQL'
  const env = { DATABASE_URL: url ?? (await makeStore(engine, plants)), ACCESS_TOKENS: token }
  const node = [process.execPath, '--min-semi-space-size=8', '--disable-sigusr1']
  return startServer(name, [...node, program, 'serve'], env)
}

/** A command of Plant Store. */
export const ours = (...args: string[]) => [process.execPath, program, ...args]

export function startPeer(name: string, script: string, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const command = [process.execPath, join(root, 'bench/peers', script)]
  return startServer(name, command, { ACCESS_TOKENS: token, NODE_ENV: 'production', ...env })
}

/** Starts the bare server, which returns the response of `model` to `path` for every GET. */
export async function startBare(model: Server, path: string, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const file = newFile('list.json')
  writeFileSync(file, await (await fetch(model.url + path, { headers })).bytes())
  return startPeer('bare node:http', 'bare.ts', { LIST_FILE: file, ...env })
}

/** Starts the same two operations in other frameworks, with the same number of plants. */
export function startFrameworks(): Promise<Server[]> {
  const start = (name: string, script: string) =>
    startPeer(name, script, { DATABASE_FILE: newFile('plants') })
  return Promise.all([
    start('Fastify + node:sqlite', 'fastify.ts'),
    start('Express 5 + node:sqlite', 'express.js'),
    start('json-server', 'json-server.js'),
  ])
}

/** Exports a store to a CSV file, and imports that into a table with `sqlite3`. Resolves to both paths. */
export async function makeInput(url: string): Promise<{ csv: string; table: string }> {
  const [csv, table] = [newFile('plants.csv'), newFile('table.db')]
  await runCommand(ours('export', '--no-id', csv), { DATABASE_URL: url })
  await runCommand(sqliteImport(csv, table))
  return { csv, table }
}

export const sqlite = (path: string, ...commands: string[]) => ['sqlite3', path, ...commands]
export const sqliteImport = (csv: string, table: string) => {
  const make = ['PRAGMA journal_mode = WAL', 'CREATE TABLE plants (name TEXT, tag TEXT)']
  return sqlite(table, ...make, `.import --csv --skip 1 ${csv} plants`)
}

export const stopPostgres = async () => (await postgres)?.destroy()
