// The scenarios of the benchmark, and the contenders that each of them compares.
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Job } from './generate.ts'
import { measure, readCpuUs, readMiB, runCommand, type Server, type Slice } from './processes.ts'
import * as servers from './servers.ts'

export type Options = { rounds: number; roundMs: number; plants: number }
/** `take`: measures one slice. */
export type Contender = { name: string; take(ms: number): Promise<Slice>; stop?(): Promise<void> }
/** `floor`: the first contender is the baseline of the ratios. */
export type Scenario = {
  name: string
  title: string
  floor?: boolean
  rounds?: number
  start(options: Options): Promise<Contender[]>
}

type Work = Omit<Job, 'url' | 'ms'>
const list = '/plants?limit=100'
const get: Work = { method: 'GET', paths: [list], headers: servers.headers, status: 200, connections: 32 }
const post: Work = { ...get, method: 'POST', paths: ['/plants'], connections: 64 }
const unchanged: Work = { ...get, headers: { ...get.headers, 'If-None-Match': '*' }, status: 304 }
const whole: Work = { ...get, paths: ['/plants'], connections: 1 }
/** More than fit into the cache. */
const coldPages = 10_000

const load = (work: Work, server: Server, name = server.name): Contender => ({
  name,
  take: (ms) => measure(server, { ...work, ms }),
  stop: server.stop,
})

/** The bare server, ours on both engines, and other frameworks. `bare`: settings of the bare server. */
async function startAll(work: Work, bare?: NodeJS.ProcessEnv, plants?: number): Promise<Contender[]> {
  const ours = await servers.startOurs('SQLite', plants)
  const postgres = await servers.startOurs('PostgreSQL', plants)
  const floor = await servers.startBare(ours, work.method === 'GET' ? (work.paths[0] as string) : list, bare)
  const others = bare ? [] : await servers.startFrameworks()
  return [floor, ours, postgres, ...others].map((one) => load(work, one))
}

/** Pages at many positions, ordered so that consecutive ones are far apart. */
async function findPages(server: Server, plants: number): Promise<string[]> {
  const paths: string[] = []
  for (let path: string | undefined = `/plants?limit=${plants / coldPages}`; path; ) {
    paths.push(path.replace(/limit=\d+/, 'limit=100'))
    const { headers } = await fetch(server.url + path, { headers: servers.headers })
    path = /<([^>]+)>/.exec(String(headers.get('link')))?.[1]
  }
  return paths.map((_, n) => paths[(n * 6101) % paths.length] as string)
}

async function startCold({ plants }: Options): Promise<Contender[]> {
  const found: Contender[] = []
  for (const engine of ['SQLite', 'PostgreSQL'] as const) {
    const server = await servers.startOurs(engine, plants)
    const paths = await findPages(server, plants)
    found.push({ ...load(get, server), stop: async () => {} })
    found.push(load({ ...get, paths }, server, `${server.name}, ${paths.length} pages in turn`))
  }
  return found
}

/** Stores of very different sizes, on which the same work should cost the same. */
async function startSizes({ plants }: Options): Promise<Contender[]> {
  const found: Contender[] = []
  for (const size of [10_000, 10 * plants]) {
    const server = await servers.startOurs('SQLite', size)
    found.push({ ...load(get, server, `Plant Store, GET, ${size} plants`), stop: async () => {} })
    found.push(load(post, server, `Plant Store, POST, ${size} plants`))
  }
  return found
}

/** One process, and two on one file with half of the connections each. */
async function startProcesses(): Promise<Contender[]> {
  const url = await servers.makeStore('SQLite', 1000)
  const start = () => servers.startOurs('SQLite', 0, url)
  const two = await Promise.all([start(), start()])
  const half = { ...post, connections: post.connections / 2 }
  return [
    load(post, await servers.startOurs('SQLite')),
    {
      name: 'Plant Store, two processes',
      async take(ms) {
        const [one, other] = (await Promise.all(two.map((server) => measure(server, { ...half, ms })))) as [
          Slice,
          Slice,
        ]
        const mean = (figure: keyof Slice) => (one[figure] + other[figure]) / 2
        const sum = (figure: keyof Slice) => one[figure] + other[figure]
        const [cpuUs, p50Ms, p99Ms] = [mean('cpuUs'), mean('p50Ms'), mean('p99Ms')]
        return { cpuUs, perSecond: sum('perSecond'), p50Ms, p99Ms, mib: sum('mib') }
      },
      stop: async () => void (await Promise.all(two.map(({ stop }) => stop()))),
    },
  ]
}

async function measureStart(start: () => Promise<Server>): Promise<Slice> {
  const startMs = performance.now()
  const { pid, stop } = await start()
  const ms = performance.now() - startMs
  await sleep(500)
  const [cpuUs, mib] = [readCpuUs(pid), readMiB(pid)]
  await stop()
  return { cpuUs, perSecond: 1000 / ms, p50Ms: ms, p99Ms: Number.NaN, mib }
}

async function startStarts(): Promise<Contender[]> {
  const url = await servers.makeStore('SQLite', 1000)
  const bare = () => servers.startPeer('bare node:http', 'plain.js')
  return [
    { name: 'bare node:http', take: () => measureStart(bare) },
    { name: 'Plant Store', take: () => measureStart(() => servers.startOurs('SQLite', 0, url)) },
  ]
}

async function startCommands({ plants }: Options): Promise<Contender[]> {
  const url = await servers.makeStore('SQLite', plants)
  const { csv, table } = await servers.makeInput(url)
  const path = fileURLToPath(url)
  const bulk = (name: string, command: (into: string) => string[]): Contender => ({
    name,
    async take() {
      const into = servers.newFile('made')
      const { ms, cpuMs, peakMiB } = await runCommand(command(into), { DATABASE_URL: url })
      for (const ending of ['', '-wal', '-shm', '.ndjson']) rmSync(into + ending, { force: true })
      const [cpuUs, perSecond] = [(cpuMs * 1000) / plants, (plants * 1000) / ms]
      return { cpuUs, perSecond, p50Ms: ms, p99Ms: Number.NaN, mib: peakMiB }
    },
  })
  const { ours, sqlite, sqliteImport } = servers
  const rows = "SELECT json_object('name', name, 'tag', tag) FROM plants"
  return [
    bulk('import: sqlite3', (into) => sqliteImport(csv, into)),
    bulk('import: Plant Store', (into) => ours('import', csv, '--database-url', `file:${into}`)),
    bulk('export: sqlite3', (into) => sqlite(table, `.once ${into}`, rows)),
    bulk('export: Plant Store', (into) => ours('export', `${into}.ndjson`)),
    bulk('backup: sqlite3', (into) => sqlite(path, `.backup ${into}`)),
    bulk('backup: Plant Store', (into) => ours('backup', into)),
    bulk('verify: sqlite3', () => sqlite(path, 'PRAGMA integrity_check')),
    bulk('verify: Plant Store', () => ours('verify')),
  ]
}

const page = 'GET ?limit=100'
const [piped, notModified] = [{ PIPED: '1' }, { UNCHANGED: '1' }]
const startWhole = ({ plants }: Options) => startAll(whole, piped, plants)
export const scenarios: Scenario[] = [
  { name: 'page', title: `${page}, 32 connections`, floor: true, start: () => startAll(get) },
  { name: '304', title: `${page} answered 304`, floor: true, start: () => startAll(unchanged, notModified) },
  { name: 'post', title: 'POST, 64 connections', floor: true, start: () => startAll(post) },
  { name: 'cold', title: `${page}, one page and pages that are not cached`, start: startCold },
  { name: 'size', title: 'a small and a very large store', start: startSizes },
  { name: 'processes', title: 'POST, 64 connections, by one and by two processes', start: startProcesses },
  { name: 'whole', title: 'a large list', floor: true, start: startWhole },
  { name: 'start', title: 'start, and memory at rest', floor: true, start: startStarts },
  { name: 'commands', title: 'commands on a large store', rounds: 3, start: startCommands },
]
