// POST of a plant, on stable storage before the answer.
import { addPlant, startServers } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { atMost, leastAtMost, rateAtLeast, reach } from '../goals.ts'
import { measureRounds, type Round, ratioOf } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const title = 'POST, 64 connections'

export const add: Scenario = {
  name: 'add',
  title,
  async run(bench) {
    const servers = await startServers(bench)
    const results = await measureRounds(
      bench,
      servers.map((server) => ({
        server,
        connections: 64,
        // json-server answers 201.
        request: server.name === 'json-server' ? { ...addPlant, status: 201 } : addPlant,
      })),
    )
    const [bare, ours, express, hono] = results as [Round[], Round[], Round[], Round[]]
    return {
      rows: makeRows(title, servers, results, 0),
      goals: [
        leastAtMost({ work: title, figure: 'CPU per request / bare' }, [ours, bare], reach.addCpu),
        atMost(title, 'p99 / bare', ratioOf(ours, bare, 'p99Ms'), [2, 1.3]),
        rateAtLeast({ work: title, figure: 'requests/s / Express' }, [ours, express], [10, 14]),
        rateAtLeast({ work: title, figure: 'requests/s / Hono' }, [ours, hono], [10, 14]),
      ],
    }
  },
}
