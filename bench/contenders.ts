// How each server is started, and the requests that all of them get.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { type Bench, root } from './bench.ts'
import { fillJson, fillTable } from './fill.ts'
import type { RequestKind } from './load/job.ts'
import { makePlant } from './load/plants.ts'
import { Server, type StartOptions } from './server.ts'
import { makeStore } from './stores.ts'

const token = 'a-token-for-the-bench'
const headers = { Authorization: `Bearer ${token}` }

export const getList: RequestKind = { method: 'GET', path: '/plants?limit=100', headers, status: 200 }
export const getWholeList: RequestKind = { method: 'GET', path: '/plants', headers, status: 200 }
export const addPlant: RequestKind = { method: 'POST', path: '/plants', headers, status: 200 }

/** How many plants a store has when nothing else is said. */
const smallStore = 1000

/**
 * `from`: the checkout to start, instead of this one; `under`: a command that starts it in its turn; `cpus`: other
 * processors than a server has as a rule.
 */
export type PlantStoreOptions = {
  name?: string
  from?: string
  databaseUrl?: string
  under?: string[]
  env?: NodeJS.ProcessEnv
  cpus?: string | undefined
}

/** Plant Store as `npm start` starts it. */
export async function startPlantStore(
  bench: Bench,
  { name = 'Plant Store', from = root, under = [], ...options }: PlantStoreOptions = {},
): Promise<Server> {
  const { env, databaseUrl = await makeStore(bench, smallStore), cpus = bench.pins.server } = options
  return start(bench, {
    name,
    command: [...under, process.execPath, ...startArguments(from)],
    env: { DATABASE_URL: databaseUrl, ACCESS_TOKENS: token, ...env },
    cpus,
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
    .map((word) => (/^(bin|src)\//.test(word) ? join(from, word) : word))
}

/** The bare server, which answers with what Plant Store answers. */
export async function startBare(bench: Bench, model: Server, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const list = bench.newFile('list.json')
  writeFileSync(list, await fetchText(model, getList))
  return startPeer(bench, 'bare node:http', 'bare.ts', { LIST_FILE: list, ...env })
}

/** A bare server with nothing to load, for whoever looks at the start alone. */
export function startPlain(bench: Bench): Promise<Server> {
  return startPeer(bench, 'bare node:http', 'plain.js', {})
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

/** An answer as it came over the wire: its bytes in whatever coding, and its Link header. */
export async function fetchCoded(server: Server, { path, headers }: RequestKind): Promise<Coded> {
  const request = get(server.url + path, { headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const bytes = await buffer(response)
  if (response.statusCode !== 200) throw new Error(`${server.name} answered ${response.statusCode}`)
  const { link, 'content-encoding': coding } = response.headers
  return { coding, link: String(link ?? ''), bytes }
}

export type Coded = { coding: string | undefined; link: string; bytes: Buffer }

function makeTable(bench: Bench): string {
  const file = bench.newFile('peer.db')
  fillTable(file, smallStore)
  return file
}

function startPeer(bench: Bench, name: string, script: string, env: NodeJS.ProcessEnv): Promise<Server> {
  return start(bench, {
    name,
    command: [process.execPath, join(root, 'bench/peers', script)],
    env: { ACCESS_TOKENS: token, NODE_ENV: 'production', ...env },
    cpus: bench.pins.server,
  })
}

async function start(bench: Bench, options: Omit<StartOptions, 'logFile'>): Promise<Server> {
  return bench.use(await Server.start({ ...options, logFile: bench.newFile('server.log') }))
}

/** All that the list and the add operation are measured on; the bare server first. */
export async function startServers(bench: Bench) {
  const ours = await startPlantStore(bench)
  const others = [startBare(bench, ours), startExpress(bench), startHono(bench), startJsonServer(bench)]
  const [bare, ...frameworks] = await Promise.all(others)
  return [bare, ours, ...frameworks].filter((server) => server !== undefined)
}
