// The two operations in a very large store, beside a small one: the cost must not grow with the store.
import { addPlant, getList, startPlantStore } from '../contenders.ts'
import { type Findings, makeRows } from '../findings.ts'
import { leastAtMost } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

export const largeStore: Scenario = {
  name: 'large-store',
  title: 'a large store beside a small one',
  async run(bench) {
    const plants = `${bench.options.largePlants.toLocaleString('en')} plants`
    const large = await makeStore(bench, bench.options.largePlants)
    const servers = [
      await startPlantStore(bench, { name: 'Plant Store, 1,000 plants' }),
      await startPlantStore(bench, { name: `Plant Store, ${plants}`, databaseUrl: large }),
    ]
    const findings: Findings = { rows: [], goals: [] }
    for (const [work, request, connections] of [
      [`GET ?limit=100 at ${plants}`, getList, 32],
      [`POST at ${plants}`, addPlant, 64],
    ] as const) {
      const results = await measureRounds(
        bench,
        servers.map((server) => ({ server, request, connections })),
      )
      const [few, many] = results as [Round[], Round[]]
      findings.rows.push(...makeRows(work, servers, results, undefined))
      findings.goals.push(leastAtMost({ work, figure: 'CPU / at 1,000' }, [many, few], [1.15, 1.05]))
    }
    return findings
  },
}
