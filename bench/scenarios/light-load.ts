// A few clients that add a plant now and then, on a disk that takes a while to sync: what it costs that a batch waits for
// company. It is held against the same service whose batches wait for nobody (peers/no-company.ts).
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type Bench, root } from '../bench.ts'
import { addPlant, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { leastAtMost, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Server } from '../server.ts'
import { slowSync, unableToSlow } from '../slow-sync.ts'
import type { Scenario } from './scenario.ts'

const syncMs = 4
const clients = 4
const perSecond = 50

const work = `POST, ${clients} clients × ${perSecond}/s, an fsync takes ${syncMs} ms`

export const lightLoad: Scenario = {
  name: 'light-load',
  title: work,
  unable: unableToSlow,
  async run(bench) {
    const under = slowSync(syncMs)
    const servers = [await startAlone(bench, under), await startPlantStore(bench, { under })]
    const results = await measureRounds(
      bench,
      servers.map((server) => ({ server, request: addPlant, connections: clients, perSecond })),
    )
    const [alone, ours] = results as [Round[], Round[]]
    const goal = { work, figure: 'CPU per request / no wait for company' }
    return {
      rows: makeRows(work, servers, results, undefined),
      goals: [leastAtMost(goal, [ours, alone], reach.lightLoadCpu)],
    }
  },
}

async function startAlone(bench: Bench, under: string[]): Promise<Server> {
  const preloaded = pathToFileURL(`${root}/bench/peers/no-company.ts`).href
  const name = 'Plant Store, no wait for company'
  const server = await startPlantStore(bench, { name, under, env: { NODE_OPTIONS: `--import=${preloaded}` } })
  if (!readFileSync(server.logFile, 'utf8').includes('no company'))
    throw new Error('src/plants/company.ts was not loaded: bench/peers/no-company.ts replaces nothing')
  return server
}
