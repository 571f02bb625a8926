// The whole list of a large store: how long it takes beside a file that is piped, and the memory it needs.
import { writeFile } from 'node:fs/promises'
import type { Bench } from '../bench.ts'
import { fetchText, getList, getWholeList, makeStore, startBare, startPlantStore } from '../contenders.ts'
import { atMost, type Findings, type Goal, type Row } from '../findings.ts'
import type { RequestKind } from '../load/job.ts'
import { median } from '../rounds.ts'
import type { Server } from '../server.ts'
import type { Scenario } from './scenario.ts'

const shortList = 10_000

export const wholeList: Scenario = {
  name: 'whole-list',
  title: 'whole list',
  async run(bench) {
    const count = bench.options.listPlants
    const title = `whole list of ${count.toLocaleString('en')} plants`
    const databaseUrl = await makeStore(bench, count)
    const times = await compareTimes(bench, databaseUrl, title)
    await bench.stopServers()
    const long = await measureGrowth(bench, databaseUrl)
    const short = await measureGrowth(bench, await makeStore(bench, shortList))
    return {
      rows: times.rows,
      goals: [...times.goals, memoryGoal(title, long), memoryGoal('the same of 10,000', short)],
    }
  },
}

async function compareTimes(bench: Bench, databaseUrl: string, title: string): Promise<Findings> {
  const ours = await startPlantStore(bench, { databaseUrl })
  const file = bench.newFile('whole-list.json')
  await writeFile(file, await fetchText(ours, getWholeList))
  const bare = await startBare(bench, ours, { WHOLE_LIST_FILE: file })
  const [floor, measured] = await pullInTurns(bench, title, [
    [bare, { ...getWholeList, path: '/whole' }],
    [ours, getWholeList],
  ])
  if (!floor || !measured) throw new Error('nothing was measured')
  const ratio = median(measured.ms.map((ms, round) => ms / (floor.ms[round] ?? Number.NaN)))
  const cpuRatio = measured.row.cpuUs / floor.row.cpuUs
  const rows = [floor.row, { ...measured.row, ratio: cpuRatio }]
  return { rows, goals: [atMost(title, 'wall time / file piped', ratio, [3, 2])] }
}

/** Pulls whole lists from each server in turn. */
export async function pullInTurns(
  bench: Bench,
  work: string,
  contenders: [Server, RequestKind][],
): Promise<{ ms: number[]; row: Row }[]> {
  const found = contenders.map(() => ({ ms: [] as number[], cpuUs: [] as number[] }))
  for (let round = 0; round <= bench.options.rounds; round++)
    for (const [index, [server, request]] of contenders.entries()) {
      bench.progress.step(round / (bench.options.rounds + 1), `${server.name}, whole list ${round}`)
      const before = server.cpuUs() ?? Number.NaN
      const { p50Ms } = await bench.load.run({ kind: 'pull', url: server.url, request, connections: 1 })
      if (round === 0) continue
      found[index]?.ms.push(p50Ms)
      found[index]?.cpuUs.push((server.cpuUs() ?? Number.NaN) - before)
    }
  return contenders.map(([{ name }], index) => {
    const { ms = [], cpuUs = [] } = found[index] ?? {}
    const p50Ms = median(ms)
    const figures = { cpuUs: median(cpuUs), perSecond: 1000 / p50Ms, p50Ms, p99Ms: Math.max(...ms) }
    return { ms, row: { work, server: name, ...figures, ratio: undefined } }
  })
}

/** MiB by which the resident memory of a new server grows while whole lists are read. */
export async function measureGrowth(bench: Bench, databaseUrl: string): Promise<number> {
  const server = await startPlantStore(bench, { databaseUrl })
  const job = { url: server.url, request: getList, connections: 4 }
  await bench.load.run({ kind: 'requests', ms: bench.options.roundMs, ...job })
  server.resetPeak()
  const before = server.residentMiB() ?? Number.NaN
  for (let list = 0; list < 3; list++)
    await bench.load.run({ kind: 'pull', url: server.url, request: getWholeList, connections: 1 })
  const growth = (server.peakMiB() ?? Number.NaN) - before
  await bench.stopServers()
  return growth
}

/** What memory may grow by while lists are read. */
export function memoryGoal(work: string, value: number): Goal {
  return { work, figure: 'growth of memory', value, unit: ' MiB', target: 48, aim: 24, more: false }
}
