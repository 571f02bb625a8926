// GET of a page of 100 plants, beside the bare server and the frameworks.
import { getList, startServers } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { leastAtMost, rateAtLeast, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const title = 'GET ?limit=100, 32 connections'

export const list: Scenario = {
  name: 'list',
  title,
  async run(bench) {
    const servers = await startServers(bench)
    const results = await measureRounds(
      bench,
      servers.map((server) => ({
        server,
        connections: 32,
        // json-server has another word for it.
        request: server.name === 'json-server' ? { ...getList, path: '/plants?_limit=100' } : getList,
      })),
    )
    const [bare, ours, express, hono] = results as [Round[], Round[], Round[], Round[]]
    return {
      rows: makeRows(title, servers, results, 0),
      goals: [
        leastAtMost({ work: title, figure: 'CPU per request / bare' }, [ours, bare], reach.listCpu),
        rateAtLeast({ work: title, figure: 'requests/s / Express' }, [ours, express], [5, 7]),
        rateAtLeast({ work: title, figure: 'requests/s / Hono' }, [ours, hono], [5, 7]),
      ],
    }
  },
}
