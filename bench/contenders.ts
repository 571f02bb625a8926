// How each server is started, and the requests that all of them get.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { type Bench, root } from './bench.ts'
import { runCommand } from './commands.ts'
import type { RequestKind } from './load/job.ts'
import { type Server, type StartOptions, startServer } from './server.ts'
import { makeInput, makeStore } from './stores.ts'

const token = 'a-token-for-the-bench'
const headers = { Authorization: `Bearer ${token}` }

export const getList: RequestKind = { method: 'GET', path: '/plants?limit=100', headers, status: 200 }
export const getWholeList: RequestKind = { method: 'GET', path: '/plants', headers, status: 200 }
export const addPlant: RequestKind = { method: 'POST', path: '/plants', headers, status: 200 }

/** The usual load of each operation: a page of the list, an addition, the whole list. */
export const pages = { request: getList, connections: 32 }
export const additions = { request: addPlant, connections: 64 }
/** Several lists in a slice, since one is over before others can be seen to disturb it. */
export const wholeLists = { request: getWholeList, connections: 1, times: 4 }

/** How many plants a store has by default. */
const smallStore = 1000

/**
 * `from`: the checkout to start, instead of this one; `plants`: how many a new store has, unless `databaseUrl` names one; `under`: a command that starts it in its turn; `cpus`: other
 * processors than a server has as a rule.
 */
export type PlantStoreOptions = Partial<Pick<StartOptions, 'name' | 'env' | 'cpus'>> & {
  from?: string
  plants?: number
  databaseUrl?: string
  under?: string[]
}

/** Plant Store as `npm start` starts it. */
export async function startPlantStore(bench: Bench, options: PlantStoreOptions = {}): Promise<Server> {
  const { name = 'Plant Store', from = root, under = [], env, cpus = bench.pins.server } = options
  const { plants = smallStore, databaseUrl = await makeStore(bench, plants) } = options
  const { scripts } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
  return startServer(bench, {
    name,
    command: [...under, 'sh', '-c', scripts.start],
    cwd: from,
    env: { DATABASE_URL: databaseUrl, ACCESS_TOKENS: token, ...env },
    cpus,
  })
}

/** Another checkout, which fills its store itself: it may not know what this one makes. */
export async function startCheckout(bench: Bench, options: PlantStoreOptions) {
  const { from = root, plants = smallStore } = options
  const { databaseUrl = pathToFileURL(bench.newFile('checkout.db')).href } = options
  const input = await makeInput(bench, 'ndjson', plants)
  const command = [process.execPath, join(from, 'bin/plant-store.js'), 'import', input, '--quiet']
  await runCommand(bench, { command, env: { DATABASE_URL: databaseUrl } })
  return startPlantStore(bench, { ...options, databaseUrl })
}

/** The bare server, which answers with what Plant Store answers. */
export async function startBare(bench: Bench, model: Server, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const list = bench.newFile('list.json')
  writeFileSync(list, (await fetchAnswer(model, getList)).bytes)
  return startPeer(bench, 'bare node:http', 'bare.ts', { LIST_FILE: list, ...env })
}

/** An answer as it came over the wire, in whatever coding. Throws when it is not 200. */
export async function fetchAnswer(server: Server, { path, headers }: RequestKind) {
  const request = get(server.url + path, { headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const bytes = await buffer(response)
  if (response.statusCode !== 200) throw new Error(`${server.name} answered ${response.statusCode}`)
  return { headers: response.headers, bytes }
}

/** The paths of a page and all behind it, as the Link headers lead through them (RFC 8288). */
export async function findPages(server: Server, first: string): Promise<string[]> {
  const paths: string[] = []
  for (let path: string | undefined = first; path; ) {
    paths.push(path)
    const { headers } = await fetchAnswer(server, { ...getList, path })
    path = /<([^>]+)>; *rel="next"/.exec(String(headers.link))?.[1]
  }
  if (paths.length < 2) throw new Error('the links lead nowhere')
  return paths
}

/** A server of peers/. */
export function startPeer(bench: Bench, name: string, script: string, env: NodeJS.ProcessEnv = {}) {
  return startServer(bench, {
    name,
    command: [process.execPath, join(root, 'bench/peers', script)],
    env: { ACCESS_TOKENS: token, NODE_ENV: 'production', ...env },
    cpus: bench.pins.server,
  })
}

const frameworks = {
  'Express 5 + node:sqlite': 'express.js',
  'Hono + node:sqlite': 'hono.ts',
  'json-server': 'json-server.js',
}

/** All that the list and the add operation are measured on: the bare server, Plant Store and the frameworks. */
export async function startServers(bench: Bench): Promise<Server[]> {
  const ours = await startPlantStore(bench)
  const servers = [await startBare(bench, ours), ours]
  for (const [name, script] of Object.entries(frameworks)) {
    const server = await startPeer(bench, name, script, { DATABASE_FILE: bench.newFile('plants.json') })
    await bench.load.run({ url: server.url, request: addPlant, connections: 1, ms: 0, times: smallStore })
    servers.push(server)
  }
  return servers
}
