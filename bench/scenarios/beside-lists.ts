// Short lists while other clients pull long ones: how long the short ones wait.
import { getList, getWholeList, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { measureBeside, medianOf, type Round } from '../rounds.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

export const besideLists: Scenario = {
  name: 'beside-lists',
  title: 'GET ?limit=100 beside whole lists',
  async run(bench) {
    const { rounds, roundMs, warmUpMs, listPlants } = bench.options
    const title = `GET ?limit=100, 32 connections, while 4 clients pull ${listPlants.toLocaleString('en')} plants`
    const server = await startPlantStore(bench, { databaseUrl: await makeStore(bench, listPlants) })
    const contender = { server, request: getList, connections: 32 }
    const pullers = { kind: 'pull', url: server.url, request: getWholeList, connections: 4 } as const
    await measureBeside(bench, contender, warmUpMs, pullers)
    const results: Round[] = []
    for (let round = 0; round < rounds; round++) {
      bench.progress.step(round / rounds, `round ${round + 1}`)
      results.push((await measureBeside(bench, contender, roundMs, pullers)).round)
    }
    const rows = makeRows(title, [server], [results], undefined)
    const value = medianOf(results, 'p99Ms')
    return {
      rows,
      goals: [{ work: title, figure: 'p99', value, unit: ' ms', target: 25, aim: 10, more: false }],
    }
  },
}
