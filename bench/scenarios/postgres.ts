// The same service on PostgreSQL, beside SQLite and beside one INSERT a request.
import type { Bench } from '../bench.ts'
import { addPlant, getList, getWholeList, startPgInsert, startPlantStore } from '../contenders.ts'
import { fillStore } from '../fill.ts'
import { type Findings, makeRows } from '../findings.ts'
import { leastAtMost, rateAtLeast, reach } from '../goals.ts'
import type { RequestKind } from '../load/job.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Server } from '../server.ts'
import { makeStore, startPostgres } from '../stores.ts'
import type { Scenario } from './scenario.ts'
import { growthGoal, listsPerSlice, measureGrowth } from './whole-list.ts'

const connections = 64

export const postgres: Scenario = {
  name: 'postgres',
  title: 'PostgreSQL beside SQLite',
  async run(bench) {
    const database = bench.options.postgres === undefined ? await startPostgres() : undefined
    const databaseUrl = bench.options.postgres ?? (database?.url() as string)
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
    const growth = growthGoal('whole list from PostgreSQL', await measureGrowth(bench, databaseUrl))
    database?.destroy()
    return {
      rows: findings.flatMap(({ rows }) => rows),
      goals: [...findings.flatMap(({ goals }) => goals), growth],
    }
  },
}

async function compareWholeLists(bench: Bench, servers: [Server, Server]): Promise<Findings> {
  const work = `whole list of ${bench.options.listPlants.toLocaleString('en')} plants, PostgreSQL`
  const results = await measureRounds(
    bench,
    servers.map((server) => ({ server, request: getWholeList, connections: 1, lists: listsPerSlice })),
  )
  const [sqlite, ours] = results as [Round[], Round[]]
  const goal = { work, figure: 'wall time / SQLite', by: 'p50Ms' } as const
  return {
    rows: makeRows(work, servers, results, undefined),
    goals: [leastAtMost(goal, [ours, sqlite], [2, 2])],
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
  const wanted = request.method === 'GET' ? reach.postgresList : ([0.65, 0.8] as const)
  const goals = [rateAtLeast({ work, figure: 'requests/s / SQLite' }, [ours, sqlite], wanted)]
  if (insert) goals.push(rateAtLeast({ work, figure: 'requests/s / one INSERT' }, [ours, insert], [6, 6]))
  return { rows: makeRows(work, servers, results, undefined), goals }
}
