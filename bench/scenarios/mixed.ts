// What a service in use gets: nine lists of different pages for each plant that is added.
import { addPlant, fetchCoded, getList, startBare, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { measureRounds } from '../rounds.ts'
import type { Server } from '../server.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

const plants = 50_000
const every = 10

const work = '90 % GET of different pages, 10 % POST, 64 connections'

export const mixed: Scenario = {
  name: 'mixed',
  title: work,
  async run(bench) {
    const ours = await startPlantStore(bench, { databaseUrl: await makeStore(bench, plants) })
    const bare = await startBare(bench, ours)
    const mix = { paths: await findPages(ours), other: addPlant, every }
    const results = await measureRounds(
      bench,
      [bare, ours].map((server) => ({ server, request: getList, connections: 64, mix })),
    )
    return { rows: makeRows(work, [bare, ours], results, 0), goals: [] }
  },
}

/** The paths of all pages, as the Link headers lead through them (RFC 8288). */
async function findPages(server: Server): Promise<string[]> {
  const paths: string[] = []
  for (let path: string | undefined = getList.path; path; ) {
    paths.push(path)
    const { link } = await fetchCoded(server, { ...getList, path })
    path = /<([^>]+)>; *rel="next"/.exec(link)?.[1]
  }
  if (paths.length < plants / 100) throw new Error(`the links lead to ${paths.length} pages only`)
  return paths
}
