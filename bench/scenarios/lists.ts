// The whole list of a large store, and the same from PostgreSQL: how long it takes, and the memory it needs.
import { writeFile } from 'node:fs/promises'
import type { Bench } from '../bench.ts'
import {
  additions,
  fetchAnswer,
  getList,
  getWholeList,
  pages,
  startBare,
  startPeer,
  startPlantStore,
  wholeLists,
} from '../contenders.ts'
import { type Contest, compare, type Finding, type Scenario } from '../findings.ts'
import { atMost, leastAtMost, rateAtLeast } from '../goals.ts'
import { fillStore, makeStore, startPostgres } from '../stores.ts'

const shortList = 10_000

export const wholeList: Scenario = {
  name: 'whole-list',
  title: 'whole list',
  async run(bench) {
    const count = bench.options.listPlants
    const work = `whole list of ${bench.options.listName}`
    const databaseUrl = await makeStore(bench, count)
    const ours = await startPlantStore(bench, { databaseUrl })
    const file = bench.newFile('whole-list.json')
    await writeFile(file, (await fetchAnswer(ours, getWholeList)).bytes)
    const times = await compare(bench, {
      work,
      ...wholeLists,
      servers: [await startBare(bench, ours, { WHOLE_LIST_FILE: file }), ours],
      floor: true,
      judge: ([bare, list]) => [leastAtMost('wall time / file piped', [list, bare], [1.9, 1.2], 'p50Ms')],
    })
    await bench.stopServers()
    const long = await judgeGrowth(bench, work, databaseUrl)
    const shortUrl = await makeStore(bench, shortList)
    const short = await judgeGrowth(bench, 'whole list of 10,000 plants', shortUrl)
    return [...times, long, short]
  },
}

/** The same service on PostgreSQL, beside SQLite and beside one INSERT per request. */
export const postgres: Scenario = {
  name: 'postgres',
  title: 'PostgreSQL beside SQLite',
  async run(bench) {
    const database = bench.options.postgres === undefined ? await startPostgres() : undefined
    const databaseUrl = bench.options.postgres ?? (database?.url() as string)
    const count = bench.options.listPlants
    await fillStore(bench, databaseUrl, count)
    const sqliteUrl = await makeStore(bench, count)
    const sqlite = await startPlantStore(bench, { name: 'Plant Store, SQLite', databaseUrl: sqliteUrl })
    const ours = await startPlantStore(bench, { name: 'Plant Store, PostgreSQL', databaseUrl })
    const servers = [sqlite, ours]
    const ofLists: Contest = {
      work: `whole list of ${bench.options.listName}, PostgreSQL`,
      ...wholeLists,
      servers,
      judge: ([embedded, pg]) => [leastAtMost('wall time / SQLite', [pg, embedded], [2, 2], 'p50Ms')],
    }
    const ofPages: Contest = {
      work: 'GET ?limit=100, 64 connections, PostgreSQL',
      ...pages,
      connections: 64,
      servers,
      judge: ([embedded, pg]) => [rateAtLeast('requests/s / SQLite', [pg, embedded], [0.9, 1])],
    }
    // One INSERT per request is what group commit is compared with.
    const name = 'node:http + one INSERT by pg'
    const insert = await startPeer(bench, name, 'bare.ts', { DATABASE_URL: databaseUrl })
    const ofAdditions: Contest = {
      work: 'POST, 64 connections, PostgreSQL',
      ...additions,
      servers: [...servers, insert],
      judge: ([embedded, pg, single]) => [
        rateAtLeast('requests/s / SQLite', [pg, embedded], [0.65, 0.8]),
        rateAtLeast('requests/s / one INSERT', [pg, single], [6, 6]),
      ],
    }
    const findings = await compare(bench, ofLists, ofPages, ofAdditions)
    await bench.stopServers()
    const growth = await judgeGrowth(bench, 'whole list from PostgreSQL', databaseUrl)
    database?.destroy()
    return [...findings, growth]
  },
}

/** MiB by which the resident memory of a new server grows while whole lists are read. */
async function judgeGrowth(bench: Bench, work: string, databaseUrl: string): Promise<Finding> {
  const server = await startPlantStore(bench, { databaseUrl })
  const [job, ms] = [{ url: server.url, connections: 1 }, bench.options.roundMs]
  await bench.load.run({ ...job, ms, request: getList })
  server.resetPeak()
  const before = server.memoryMiB()
  await bench.load.run({ ...job, ms, times: 3, request: getWholeList })
  const growth = server.memoryMiB('VmHWM') - before
  await bench.stopServers()
  return { work, goals: [atMost('growth of memory', growth, [32, 16], ' MiB')] }
}
