// How long clients wait while something else is going on: an answer that is not 200 ends the scenario.
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Bench, root } from '../bench.ts'
import { additions, getWholeList, pages, startPlantStore } from '../contenders.ts'
import { compare, makeRow, type Scenario } from '../findings.ts'
import { atMost, type Reach } from '../goals.ts'
import { requireProgram, slowSync, spawnPinned, stop } from '../processes.ts'
import { measure, measureRounds, medianOf, ratioOf, type Work } from '../rounds.ts'
import { makeInput, makeStore } from '../stores.ts'

/** Short lists while other clients pull long ones. */
export const besideLists: Scenario = {
  name: 'beside-lists',
  title: 'GET ?limit=100 beside whole lists',
  async run(bench) {
    const server = await startPlantStore(bench, { plants: bench.options.listPlants })
    return compare(bench, {
      work: `GET ?limit=100, 32 connections, while 4 clients pull ${bench.options.listName}`,
      ...pages,
      background: { request: getWholeList, connections: 4 },
      servers: [server],
      judge: ([rounds]) => [atMost('p99', medianOf(rounds, 'p99Ms'), [25, 10], ' ms')],
    })
  },
}

const syncMs = 20

/** Readers on a disk that takes long to sync: they must not notice. */
export const slowDisk: Scenario = {
  name: 'slow-disk',
  title: `GET ?limit=100 while an fsync takes ${syncMs} ms`,
  unable: requireProgram('strace'),
  async run(bench) {
    const server = await startPlantStore(bench, { under: slowSync(syncMs) })
    const reading = { server, ...pages }
    const results = await measureRounds(bench, [reading, { ...reading, background: additions }])
    const [alone = [], beside = []] = results
    const writes = beside.map((round) => ({ ...round, ...round.beside }))
    // What shows that the disk was slow at all.
    if (medianOf(writes, 'p50Ms') < syncMs) throw new Error(`the writers did not wait ${syncMs} ms`)
    const rows = [
      makeRow('Plant Store, no writers', alone),
      makeRow('Plant Store, 64 writers', beside),
      makeRow('the writers', writes),
    ]
    const goals = [atMost('p99, 64 writers / none', ratioOf(beside, alone, 'p99Ms'), [2, 1.2])]
    return [{ work: slowDisk.title, rows, goals }]
  },
}

const pollMs = 10

/** The service while an import runs on its database. */
export const besideImport: Scenario = {
  name: 'beside-import',
  title: 'the service beside an import',
  async run(bench) {
    const databaseUrl = await makeStore(bench, 1000)
    const server = await startPlantStore(bench, { databaseUrl })
    await measureRounds(bench, [{ server, ...pages }])
    const measureWork = async (name: string, load: Work, reach: Reach) => {
      const child = await startImport(bench, databaseUrl)
      const round = await bench.slices.take(() => measure(bench, { server, ...load }, bench.options.roundMs))
      if (child.exitCode !== null) throw new Error('the import was over too early')
      await stop(child)
      const goals = [atMost('p99', round.p99Ms, reach, ' ms')]
      return { work: `${name}, beside an import`, rows: [makeRow(server.name, [round])], goals }
    }
    return [
      await measureWork('GET ?limit=100, 32 connections', pages, [50, 10]),
      await measureWork('POST, 64 connections', additions, [250, 100]),
    ]
  },
}

/** Resolves when the first plants are in. */
async function startImport(bench: Bench, databaseUrl: string): Promise<ChildProcess> {
  const file = await makeInput(bench, 'ndjson', bench.options.listPlants)
  const db = new DatabaseSync(fileURLToPath(databaseUrl), { readOnly: true })
  const select = db.prepare('SELECT max(position) AS head FROM plants')
  const before = Number(select.get()?.head)
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl }
  const command = [process.execPath, join(root, 'src/cli.ts'), 'import', file, '--restart', '--quiet']
  const child = spawnPinned(command, { cpus: bench.pins.all, env, stdio: 'ignore' })
  while (Number(select.get()?.head) === before) {
    if (child.exitCode !== null) throw new Error('the import failed')
    await sleep(pollMs)
  }
  db.close()
  return child
}
