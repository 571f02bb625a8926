// How each server is started, and the requests that all of them get.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Bench, root } from './bench.ts'
import { fillJson, fillStore, fillTable } from './fill.ts'
import type { RequestKind } from './load/job.ts'
import { makePlant } from './load/plants.ts'
import { Server } from './server.ts'

const token = 'a-token-for-the-bench'
const headers = { Authorization: `Bearer ${token}` }

export const getList: RequestKind = { method: 'GET', path: '/plants?limit=100', headers, status: 200 }
export const getWholeList: RequestKind = { method: 'GET', path: '/plants', headers, status: 200 }
export const addPlant: RequestKind = { method: 'POST', path: '/plants', headers, status: 200 }

/** How many plants a store has when nothing else is said. */
const smallStore = 1000

/** `from`: the checkout to start, instead of this one; `under`: a command that starts it in its turn. */
export type PlantStoreOptions = { name?: string; from?: string; databaseUrl?: string; under?: string[] }

/** Plant Store as `npm start` starts it. */
export async function startPlantStore(
  bench: Bench,
  { name = 'Plant Store', from = root, databaseUrl, under = [] }: PlantStoreOptions = {},
): Promise<Server> {
  return start(bench, name, [...under, process.execPath, ...startArguments(from)], {
    DATABASE_URL: databaseUrl ?? (await makeStore(bench, smallStore)),
    ACCESS_TOKENS: token,
  })
}

/** Another checkout: it makes its store itself, since it may not know what this one makes. */
export async function startFormer(bench: Bench, from: string): Promise<Server> {
  const databaseUrl = pathToFileURL(bench.newFile('former.db')).href
  const server = await startPlantStore(bench, { name: 'Plant Store, before', from, databaseUrl })
  for (let n = 0; n < smallStore; n++) {
    const body = JSON.stringify(makePlant(n))
    const jsonHeaders = { ...headers, 'Content-Type': 'application/json' }
    const response = await fetch(`${server.url}/plants`, { method: 'POST', headers: jsonHeaders, body })
    if (!response.ok) throw new Error(`${server.name} answered ${response.status}`)
  }
  return server
}

/** What `npm start` gives to node. */
function startArguments(from: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  return scripts.start
    .split(' ')
    .slice(2)
    .map((word) => (word.startsWith('src/') ? join(from, word) : word))
}

/** Makes a SQLite store with some plants; resolves to its URL. */
export async function makeStore(bench: Bench, count: number): Promise<string> {
  const url = pathToFileURL(bench.newFile('plants.db')).href
  await fillStore(url, count, (done) => bench.progress.step(0, `${done} of ${count} plants`))
  return url
}

/** The bare server, which answers with what Plant Store answers. */
export async function startBare(bench: Bench, model: Server, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const list = bench.newFile('list.json')
  writeFileSync(list, await fetchText(model, getList))
  return startPeer(bench, 'bare node:http', 'bare.ts', { LIST_FILE: list, ...env })
}

export function startExpress(bench: Bench): Promise<Server> {
  return startPeer(bench, 'Express 5 + node:sqlite', 'express.ts', { DATABASE_FILE: makeTable(bench) })
}

export function startHono(bench: Bench): Promise<Server> {
  return startPeer(bench, 'Hono + node:sqlite', 'hono.ts', { DATABASE_FILE: makeTable(bench) })
}

export function startJsonServer(bench: Bench): Promise<Server> {
  const file = bench.newFile('plants.json')
  fillJson(file, smallStore)
  return startPeer(bench, 'json-server', 'json-server.ts', { DATABASE_FILE: file })
}

/** One INSERT a request, in the PostgreSQL database that Plant Store is in. */
export function startPgInsert(bench: Bench, databaseUrl: string): Promise<Server> {
  return startPeer(bench, 'node:http + one INSERT by pg', 'pg-insert.ts', { DATABASE_URL: databaseUrl })
}

export async function fetchText(server: Server, { path, headers }: RequestKind): Promise<string> {
  const response = await fetch(server.url + path, { headers })
  if (!response.ok) throw new Error(`${server.name} answered ${response.status}`)
  return response.text()
}

function makeTable(bench: Bench): string {
  const file = bench.newFile('peer.db')
  fillTable(file, smallStore)
  return file
}

function startPeer(bench: Bench, name: string, script: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const command = [process.execPath, join(root, 'bench/peers', script)]
  return start(bench, name, command, { ACCESS_TOKENS: token, NODE_ENV: 'production', ...env })
}

async function start(bench: Bench, name: string, command: string[], env: NodeJS.ProcessEnv): Promise<Server> {
  const logFile = bench.newFile('server.log')
  return bench.use(await Server.start({ name, command, env, cpus: bench.pins.server, logFile }))
}

/** All that the list and the add operation are measured on; the bare server first. */
export async function startServers(bench: Bench) {
  const ours = await startPlantStore(bench)
  const others = [startBare(bench, ours), startExpress(bench), startHono(bench), startJsonServer(bench)]
  const [bare, ...frameworks] = await Promise.all(others)
  return [bare, ours, ...frameworks].filter((server) => server !== undefined)
}
