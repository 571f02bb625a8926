// The whole list of a large store: how long it takes beside a file that is piped, and the memory it needs.
import { writeFile } from 'node:fs/promises'
import type { Bench } from '../bench.ts'
import { fetchText, getList, getWholeList, startBare, startPlantStore } from '../contenders.ts'
import { type Findings, makeRows } from '../findings.ts'
import { atMostMiB, type Goal, leastAtMost, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

/** How many lists a slice has: several, since one is over before others can be seen to disturb it. */
export const listsPerSlice = 4
const shortList = 10_000

export const wholeList: Scenario = {
  name: 'whole-list',
  title: 'whole list',
  async run(bench) {
    const count = bench.options.listPlants
    const work = `whole list of ${count.toLocaleString('en')} plants`
    const databaseUrl = await makeStore(bench, count)
    const times = await compareTimes(bench, databaseUrl, work)
    await bench.stopServers()
    const long = await measureGrowth(bench, databaseUrl)
    const short = await measureGrowth(bench, await makeStore(bench, shortList))
    const goals = [growthGoal(work, long), growthGoal('whole list of 10,000 plants', short)]
    return { rows: times.rows, goals: [...times.goals, ...goals] }
  },
}

async function compareTimes(bench: Bench, databaseUrl: string, work: string): Promise<Findings> {
  const ours = await startPlantStore(bench, { databaseUrl })
  const file = bench.newFile('whole-list.json')
  await writeFile(file, await fetchText(ours, getWholeList))
  const bare = await startBare(bench, ours, { WHOLE_LIST_FILE: file })
  const pulled = { connections: 1, lists: listsPerSlice }
  const results = await measureRounds(bench, [
    { server: bare, request: { ...getWholeList, path: '/whole' }, ...pulled },
    { server: ours, request: getWholeList, ...pulled },
  ])
  const [floor, measured] = results as [Round[], Round[]]
  const goal = { work, figure: 'wall time / file piped', by: 'p50Ms' } as const
  return {
    rows: makeRows(work, [bare, ours], results, 0),
    goals: [leastAtMost(goal, [measured, floor], reach.wholeListTime)],
  }
}

/** MiB by which the resident memory of a new server grows while whole lists are read. */
export async function measureGrowth(bench: Bench, databaseUrl: string): Promise<number> {
  const server = await startPlantStore(bench, { databaseUrl })
  const job = { url: server.url, request: getList, connections: 4 }
  await bench.load.run({ kind: 'requests', ms: bench.options.roundMs, ...job })
  server.resetPeak()
  const before = server.residentMiB() ?? Number.NaN
  await bench.load.run({ kind: 'pull', times: 3, url: server.url, request: getWholeList, connections: 1 })
  const growth = (server.peakMiB() ?? Number.NaN) - before
  await bench.stopServers()
  return growth
}

/** What memory may grow by while lists are read. */
export function growthGoal(work: string, value: number): Goal {
  return atMostMiB(work, 'growth of memory', value, reach.growthMiB)
}
