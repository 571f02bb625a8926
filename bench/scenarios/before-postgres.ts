// The whole list from PostgreSQL by another checkout of Plant Store and by this one, each with a database of its own.
import { join } from 'node:path'
import { type Bench, root } from '../bench.ts'
import { runCommand } from '../bulk/command.ts'
import { Inputs } from '../bulk/inputs.ts'
import { getWholeList, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { leastAtMost, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import { startPostgres } from '../stores.ts'
import type { Scenario } from './scenario.ts'
import { listsPerSlice } from './whole-list.ts'

const plants = 200_000

export const beforePostgres: Scenario = {
  name: 'before-postgres',
  title: 'the whole list of another checkout from PostgreSQL',
  unable: ({ options }) => (options.before === undefined ? 'it takes --before' : undefined),
  async run(bench) {
    const count = Math.min(plants, bench.options.listPlants)
    const work = `whole list of ${count.toLocaleString('en')} plants, PostgreSQL, before and after`
    const database = await startPostgres()
    const file = new Inputs(bench).file('ndjson', count)
    const servers = []
    for (const [name, from] of [
      ['before', bench.options.before as string],
      ['after', root],
    ] as const) {
      await database.query(`CREATE DATABASE ${name}`)
      const databaseUrl = database.url(name)
      await fill(bench, { from, databaseUrl, file })
      servers.push(await startPlantStore(bench, { name: `Plant Store, ${name}`, from, databaseUrl }))
    }
    const results = await measureRounds(
      bench,
      servers.map((server) => ({ server, request: getWholeList, connections: 1, lists: listsPerSlice })),
    )
    const [former, ours] = results as [Round[], Round[]]
    await bench.stopServers()
    database.destroy()
    const goal = { work, figure: 'wall time / before', by: 'p50Ms' } as const
    return {
      rows: makeRows(work, servers, results, 0),
      goals: [leastAtMost(goal, [ours, former], reach.postgresListBefore)],
    }
  },
}

/** By the checkout's own hand: the one may not know what the other makes. */
async function fill(
  bench: Bench,
  { from, databaseUrl, file }: { from: string; databaseUrl: string; file: string },
): Promise<void> {
  const command = [process.execPath, join(from, 'bin/plant-store.js'), 'import', file, '--quiet']
  const env = { DATABASE_URL: databaseUrl }
  // Not measured: what it says of its usage goes nowhere.
  await runCommand(bench, command, env)
}
