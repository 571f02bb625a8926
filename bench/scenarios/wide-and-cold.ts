// Far from the usual load: thousands of busy connections, and pages that nobody asked for before.
import { findPages, getList, startBare, startPlantStore } from '../contenders.ts'
import { type Contest, compare, type Scenario } from '../findings.ts'
import { leastAtMost, type Reach } from '../goals.ts'
import { makeStore } from '../stores.ts'

/** Requests of each connection: the first one costs more than those behind it. */
const times = 5

export const wide: Scenario = {
  name: 'wide',
  title: 'GET ?limit=100 on thousands of connections',
  async run(bench) {
    const ours = await startPlantStore(bench)
    const servers = [await startBare(bench, ours), ours]
    const contest = (connections: number, reach: Reach): Contest => ({
      work: `GET ?limit=100, ${connections.toLocaleString('en')} connections`,
      request: getList,
      connections,
      times,
      servers,
      floor: true,
      judge: ([bare, measured]) => [leastAtMost('CPU per request / bare', [measured, bare], reach)],
    })
    return compare(bench, contest(2000, [1.35, 1.2]), contest(8000, [1.5, 1.35]))
  },
}

/** Plants between the starts of two pages: so few that all pages together are larger than the cache. */
const stride = 37

/** Pages from all over a large store, each of which is out of the cache when its turn comes again. */
export const cold: Scenario = {
  name: 'cold',
  title: 'GET ?limit=100 of pages that are not cached, 32 connections',
  async run(bench) {
    const databaseUrl = await makeStore(bench, bench.options.listPlants)
    const ours = await startPlantStore(bench, { databaseUrl })
    const paths = await findPages(ours, `/plants?limit=${stride}`)
    const turns = shuffle(paths).map((path) => ({ ...getList, path: path.replace(/limit=\d+/, 'limit=100') }))
    return compare(bench, {
      work: cold.title,
      request: getList,
      connections: 32,
      servers: [
        { ...ours, name: 'one page' },
        { ...ours, name: `${turns.length.toLocaleString('en')} pages in turn` },
      ],
      each: [{}, { turns }],
      judge: ([one, all]) => [leastAtMost('CPU per request / one page', [all, one], [2.1, 1.7])],
    })
  },
}

/** In an order that is the same in each run. */
function shuffle(paths: string[]): string[] {
  const golden = 0.618_033_988_75
  return paths
    .map((path, n) => ({ path, place: (n * golden) % 1 }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ path }) => path)
}
