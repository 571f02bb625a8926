// Another checkout of Plant Store beside this one, with the same load in the same rounds: what a change costs.
import { addPlant, getList, startFormer, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { leastAtMost } from '../goals.ts'
import type { RequestKind } from '../load/job.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const works: [title: string, request: RequestKind, connections: number][] = [
  ['GET ?limit=100, 32 connections, before and after', getList, 32],
  ['POST, 64 connections, before and after', addPlant, 64],
]

export const before: Scenario = {
  name: 'before',
  title: 'another checkout beside this one',
  unable: ({ options }) => (options.before === undefined ? 'it takes --before' : undefined),
  async run(bench) {
    const servers = [await startFormer(bench, bench.options.before as string), await startPlantStore(bench)]
    const rows = []
    const goals = []
    for (const [title, request, connections] of works) {
      const results = await measureRounds(
        bench,
        servers.map((server) => ({ server, request, connections })),
      )
      const [former, ours] = results as [Round[], Round[]]
      rows.push(...makeRows(title, servers, results, 0))
      const goal = { work: title, figure: 'CPU per request / before' }
      goals.push(leastAtMost(goal, [ours, former], [1.03, 1]))
    }
    return { rows, goals }
  },
}
