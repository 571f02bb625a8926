// export from SQLite, beside the sqlite3 program that prints the stored text.
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
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
import type { Scenario } from './scenario.ts'

const select = 'SELECT item FROM plants ORDER BY position'

export const exportFile: Scenario = {
  name: 'export',
  title: 'export from SQLite',
  unable: () => (isInstalled('sqlite3') ? undefined : 'there is no sqlite3'),
  async run(bench) {
    const inputs = new Inputs(bench)
    const [ours, theirs] = [exporter(bench, inputs), printer(bench, inputs)]
    const work = `export of ${bench.options.listPlants.toLocaleString('en')} plants, SQLite`
    const nets = await compareBulk(bench, [ours, theirs])
    return {
      rows: makeBulkRows(bench, work, [ours, theirs], nets),
      goals: [
        atMost(work, 'time / sqlite3', timeRatio(nets), [3, 1.5]),
        ...(await growthGoals(bench, work, [ours, nets[0] as Net[]])),
      ],
    }
  },
}

function exporter(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'Plant Store, NDJSON',
    async run(plants) {
      const file = bench.newFile('export.ndjson')
      const done = await runPlantStore(bench, await inputs.store(plants), ['export', file, '--quiet'])
      rmSync(file)
      return done
    },
  }
}

function printer(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'sqlite3 > file',
    async run(plants) {
      const file = bench.newFile('printed.ndjson')
      const database = fileURLToPath(await inputs.store(plants))
      const line = 'sqlite3 "$0" "$1" > "$2"'
      const done = await runCommand(bench, ['sh', '-c', line, database, select, file])
      rmSync(file)
      return done
    },
  }
}
