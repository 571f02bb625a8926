// Another checkout of Plant Store beside this one, with the same load in the same rounds: what a change costs.
import { type Bench, root } from '../bench.ts'
import { additions, pages, startCheckout, startPlantStore, wholeLists } from '../contenders.ts'
import { compare, type Results, type Scenario } from '../findings.ts'
import { leastAtMost } from '../goals.ts'
import { startPostgres } from '../stores.ts'

function requireBefore({ options }: Bench): string | undefined {
  return options.before === undefined ? 'it takes --before' : undefined
}

export const before: Scenario = {
  name: 'before',
  title: 'another checkout beside this one',
  unable: requireBefore,
  async run(bench) {
    const from = bench.options.before as string
    const former = await startCheckout(bench, { name: 'Plant Store, before', from })
    const servers = [former, await startPlantStore(bench)]
    const judge = ([was, is]: Results) => [leastAtMost('CPU per request / before', [is, was], [1.03, 1])]
    const contest = { servers, floor: true, judge }
    return compare(
      bench,
      { work: 'GET ?limit=100, 32 connections, before and after', ...pages, ...contest },
      { work: 'POST, 64 connections, before and after', ...additions, ...contest },
    )
  },
}

/** Pages and the whole list, each checkout with a database of its own. */
export const beforePostgres: Scenario = {
  name: 'before-postgres',
  title: 'lists of another checkout from PostgreSQL',
  unable: requireBefore,
  async run(bench) {
    const plants = Math.min(200_000, bench.options.listPlants)
    const database = await startPostgres()
    const start = async (name: string, from: string) => {
      await database.query(`CREATE DATABASE ${name}`)
      const databaseUrl = database.url(name)
      return startCheckout(bench, { name: `Plant Store, ${name}`, from, databaseUrl, plants })
    }
    const servers = [await start('before', bench.options.before as string), await start('after', root)]
    const findings = await compare(
      bench,
      {
        work: 'GET ?limit=100, 32 connections, PostgreSQL, before and after',
        ...pages,
        servers,
        floor: true,
        judge: ([first, ours]) => [leastAtMost('CPU per request / before', [ours, first], [1.03, 1])],
      },
      {
        work: `whole list of ${plants.toLocaleString('en')} plants, PostgreSQL, before and after`,
        ...wholeLists,
        servers,
        floor: true,
        judge: ([first, ours]) => [leastAtMost('wall time / before', [ours, first], [0.75, 0.5], 'p50Ms')],
      },
    )
    await bench.stopServers()
    database.destroy()
    return findings
  },
}
