// The same service on PostgreSQL, beside SQLite and beside one INSERT a request.

import { findPorts, PostgresServer } from '../../test/support/postgres.ts'
import type { Bench } from '../bench.ts'
import { addPlant, getList, getWholeList, makeStore, startPgInsert, startPlantStore } from '../contenders.ts'
import { fillStore } from '../fill.ts'
import { atLeast, atMost, type Findings, makeRows } from '../findings.ts'
import type { RequestKind } from '../load/job.ts'
import { measureRounds, median, type Round, ratioOf } from '../rounds.ts'
import type { Server } from '../server.ts'
import type { Scenario } from './scenario.ts'
import { measureGrowth, memoryGoal, pullInTurns } from './whole-list.ts'

const connections = 64

export const postgres: Scenario = {
  name: 'postgres',
  title: 'PostgreSQL beside SQLite',
  async run(bench) {
    const databaseUrl = bench.options.postgres ?? (await startDatabase())
    const count = bench.options.listPlants
    await fillStore(databaseUrl, count, (done) => bench.progress.step(0, `${done} of ${count} plants`))
    const sqliteUrl = await makeStore(bench, count)
    const sqlite = await startPlantStore(bench, { name: 'Plant Store, SQLite', databaseUrl: sqliteUrl })
    const ours = await startPlantStore(bench, { name: 'Plant Store, PostgreSQL', databaseUrl })
    const findings = [
      await compareWholeLists(bench, [sqlite, ours]),
      await compareRequests(bench, 'GET ?limit=100', getList, [sqlite, ours]),
      await compareRequests(bench, 'POST', addPlant, [sqlite, ours, await startPgInsert(bench, databaseUrl)]),
    ]
    await bench.stopServers()
    const growth = memoryGoal('whole list from PostgreSQL', await measureGrowth(bench, databaseUrl))
    return {
      rows: findings.flatMap(({ rows }) => rows),
      goals: [...findings.flatMap(({ goals }) => goals), growth],
    }
  },
}

/** A server of the bench's own, in its standard configuration; it goes when the bench ends. */
async function startDatabase(): Promise<string> {
  const [port] = await findPorts(1)
  const server = new PostgresServer({ port: port as number })
  await server.init()
  await server.start()
  return server.url()
}

async function compareWholeLists(bench: Bench, [sqlite, ours]: [Server, Server]): Promise<Findings> {
  const title = `whole list of ${bench.options.listPlants.toLocaleString('en')} plants, PostgreSQL`
  const [base, measured] = await pullInTurns(bench, title, [
    [sqlite, getWholeList],
    [ours, getWholeList],
  ])
  const ratio = median(measured?.ms.map((ms, round) => ms / (base?.ms[round] ?? Number.NaN)) ?? [])
  return {
    rows: [base, measured].flatMap((found) => found?.row ?? []),
    goals: [atMost(title, 'wall time / SQLite', ratio, [2, 2])],
  }
}

async function compareRequests(
  bench: Bench,
  name: string,
  request: RequestKind,
  servers: Server[],
): Promise<Findings> {
  const work = `${name}, ${connections} connections, PostgreSQL`
  const results = await measureRounds(
    bench,
    servers.map((server) => ({ server, request, connections })),
  )
  const [sqlite, ours, insert] = results as [Round[], Round[], Round[] | undefined]
  const ratio = ratioOf(ours, sqlite, 'perSecond')
  const goals = [
    atLeast(work, 'requests/s / SQLite', ratio, request.method === 'GET' ? [0.85, 1] : [0.65, 0.8]),
  ]
  if (insert) goals.push(atLeast(work, 'requests/s / one INSERT', ratioOf(ours, insert, 'perSecond'), [6, 6]))
  return { rows: makeRows(work, servers, results, undefined), goals }
}
