// The two operations, beside a bare server and the same operations written with other frameworks.
import type { Bench } from '../bench.ts'
import {
  additions,
  addPlant,
  fetchAnswer,
  findPages,
  getList,
  pages,
  startBare,
  startPlantStore,
  startServers,
} from '../contenders.ts'
import { type Contest, compare, type Finding, type Scenario } from '../findings.ts'
import { atMost, leastAtMost, type Reach, rateAtLeast } from '../goals.ts'
import { ratioOf } from '../rounds.ts'

export const list: Scenario = {
  name: 'list',
  title: 'GET ?limit=100, 32 connections',
  run: (bench) => compareFrameworks(bench, { work: list.title, ...pages, cpu: [1.35, 1.15], rate: [5, 7] }),
}

/** POST of a plant, on stable storage before the answer. */
export const add: Scenario = {
  name: 'add',
  title: 'POST, 64 connections',
  run: (bench) => {
    const wanted = { cpu: [1.5, 1.25], p99: [2, 1.3], rate: [10, 14] } as const
    return compareFrameworks(bench, { work: add.title, ...additions, ...wanted })
  },
}

type Wanted = Pick<Contest, 'work' | 'request' | 'connections'> & { cpu: Reach; p99?: Reach; rate: Reach }

async function compareFrameworks(bench: Bench, { cpu, p99, rate, ...contest }: Wanted): Promise<Finding[]> {
  return compare(bench, {
    ...contest,
    servers: await startServers(bench),
    floor: true,
    judge: ([bare, ours, express, hono]) => [
      leastAtMost('CPU per request / bare', [ours, bare], cpu),
      ...(p99 ? [atMost('p99 / bare', ratioOf(ours, bare, 'p99Ms'), p99)] : []),
      rateAtLeast('requests/s / Express', [ours, express], rate),
      rateAtLeast('requests/s / Hono', [ours, hono], rate),
    ],
  })
}

/** GET of a list that the client has: the answer is 304, without a body. */
export const unchanged: Scenario = {
  name: 'unchanged',
  title: 'GET ?limit=100 answered 304, 32 connections',
  async run(bench) {
    const ours = await startPlantStore(bench)
    const { etag = '' } = (await fetchAnswer(ours, getList)).headers
    const headers = { ...getList.headers, 'If-None-Match': etag }
    return compare(bench, {
      work: unchanged.title,
      request: { ...getList, headers, status: 304 },
      connections: 32,
      servers: [await startBare(bench, ours, { UNCHANGED: 'yes' }), ours],
      floor: true,
      judge: ([bare, measured]) => [leastAtMost('CPU per request / bare', [measured, bare], [1.35, 1.1])],
    })
  },
}

const mixedPlants = 50_000

/** What a service in use gets: nine lists of different pages for each plant that is added. */
export const mixed: Scenario = {
  name: 'mixed',
  title: '90 % GET of different pages, 10 % POST, 64 connections',
  async run(bench) {
    const ours = await startPlantStore(bench, { plants: mixedPlants })
    const lists = (await findPages(ours, getList.path)).map((path) => ({ ...getList, path }))
    const turns = lists.flatMap((one, index) => (index % 9 === 8 ? [one, addPlant] : [one]))
    const servers = [await startBare(bench, ours), ours]
    return compare(bench, { work: mixed.title, servers, ...pages, connections: 64, turns, floor: true })
  },
}
