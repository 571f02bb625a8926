// import into PostgreSQL, beside psql's \copy of the same rows into a table of its own.
import type { PostgresServer } from '../../test/support/postgres.ts'
import type { Bench } from '../bench.ts'
import { runCommand, runPlantStore } from '../bulk/command.ts'
import {
  type Contestant,
  compareBulk,
  growthGoals,
  makeBulkRows,
  type Net,
  timeRatio,
} from '../bulk/compare.ts'
import { Inputs } from '../bulk/inputs.ts'
import { atMost } from '../goals.ts'
import { isInstalled } from '../processes.ts'
import { startPostgres } from '../stores.ts'
import type { Scenario } from './scenario.ts'

const table = 'CREATE TABLE rows (id BIGSERIAL PRIMARY KEY, name TEXT NOT NULL, tag TEXT NOT NULL)'

export const importPostgres: Scenario = {
  name: 'import-postgres',
  title: 'import into PostgreSQL',
  unable: () => (isInstalled('psql') ? undefined : 'there is no psql'),
  async run(bench) {
    const server = await startPostgres()
    const inputs = new Inputs(bench)
    const contestants = [importer(bench, inputs, server), copier(bench, inputs, server)]
    const work = `import of ${bench.options.listPlants.toLocaleString('en')} plants, PostgreSQL`
    const nets = await compareBulk(bench, contestants)
    const goals = [
      atMost(work, 'time / \\copy', timeRatio(nets), [3, 1.5]),
      ...(await growthGoals(bench, work, [contestants[0] as Contestant, nets[0] as Net[]])),
    ]
    server.destroy()
    return { rows: makeBulkRows(bench, work, contestants, nets), goals }
  },
}

let databases = 0

/** A new, empty database each time. */
async function createDatabase(server: PostgresServer): Promise<string> {
  const name = `bulk_${databases++}`
  await server.query(`CREATE DATABASE ${name}`)
  return server.url(name)
}

function importer(bench: Bench, inputs: Inputs, server: PostgresServer): Contestant {
  return {
    name: 'Plant Store, NDJSON',
    async run(plants) {
      const file = inputs.file('ndjson', plants)
      const args = ['import', file, '--quiet', '--format', 'ndjson']
      return runPlantStore(bench, await createDatabase(server), args)
    },
  }
}

function copier(bench: Bench, inputs: Inputs, server: PostgresServer): Contestant {
  return {
    name: 'psql \\copy, no checks',
    async run(plants) {
      const url = await createDatabase(server)
      await runCommand(bench, ['psql', url, '-qc', table])
      const copy = `\\copy rows (name, tag) FROM '${inputs.file('csv', plants)}' CSV HEADER`
      return runCommand(bench, ['psql', url, '-qc', copy])
    },
  }
}
