// GET of a page of 100 plants, beside the bare server and the frameworks.
import type { Bench } from '../bench.ts'
import {
  getList,
  startBare,
  startExpress,
  startHono,
  startJsonServer,
  startPlantStore,
} from '../contenders.ts'
import { atLeast, atMost, makeRows } from '../findings.ts'
import { measureRounds, type Round, ratioOf } from '../rounds.ts'
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
        atMost(title, 'CPU per request / bare', ratioOf(ours, bare, 'cpuUs'), [1.6, 1.25]),
        atLeast(title, 'requests/s / Express', ratioOf(ours, express, 'perSecond'), [5, 7]),
        atLeast(title, 'requests/s / Hono', ratioOf(ours, hono, 'perSecond'), [5, 7]),
      ],
    }
  },
}

/** All that the list and the add operation are measured on; the bare server first. */
export async function startServers(bench: Bench) {
  const ours = await startPlantStore(bench)
  const others = [startBare(bench, ours), startExpress(bench), startHono(bench), startJsonServer(bench)]
  const [bare, ...frameworks] = await Promise.all(others)
  return [bare, ours, ...frameworks].filter((server) => server !== undefined)
}
