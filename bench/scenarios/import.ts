// import of NDJSON and CSV into SQLite, beside the same rows in one transaction with no checks.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Bench, root } from '../bench.ts'
import { type Run, runCommand, runPlantStore } from '../bulk/command.ts'
import {
  type Contestant,
  compareBulk,
  growthGoals,
  makeBulkRows,
  type Net,
  timeRatio,
} from '../bulk/compare.ts'
import { type Format, Inputs } from '../bulk/inputs.ts'
import { atMost } from '../goals.ts'
import type { Scenario } from './scenario.ts'

export const importFiles: Scenario = {
  name: 'import',
  title: 'import into SQLite',
  async run(bench) {
    const inputs = new Inputs(bench)
    const ours = (['ndjson', 'csv'] as const).map((format) => importer(bench, inputs, format))
    const contestants = [...ours, inserter(bench, inputs)]
    const work = `import of ${bench.options.listPlants.toLocaleString('en')} plants, SQLite`
    const nets = await compareBulk(bench, contestants)
    const [ndjson, csv, rows] = nets as [Net[], Net[], Net[]]
    const goals = [
      atMost(`${work}, NDJSON`, 'time / rows inserted', timeRatio([ndjson, rows]), [2.5, 1.5]),
      atMost(`${work}, CSV`, 'time / rows inserted', timeRatio([csv, rows]), [3.5, 2.5]),
      ...(await growthGoals(bench, `${work}, NDJSON`, [ours[0] as Contestant, ndjson])),
      ...(await growthGoals(bench, `${work}, CSV`, [ours[1] as Contestant, csv])),
    ]
    return { rows: makeBulkRows(bench, work, contestants, nets), goals }
  },
}

function importer(bench: Bench, inputs: Inputs, format: Format): Contestant {
  return {
    name: `Plant Store, ${format === 'csv' ? 'CSV' : 'NDJSON'}`,
    run: (plants) =>
      withNewFile(bench, (path) => {
        const file = inputs.file(format, plants)
        // Of a file with nothing in it the format cannot be told.
        return runPlantStore(bench, pathToFileURL(path).href, ['import', file, '--quiet', '--format', format])
      }),
  }
}

/** It says itself how long it took, without its start and without parsing. */
function inserter(bench: Bench, inputs: Inputs): Contestant {
  const script = join(root, 'bench/peers/insert-rows.ts')
  return {
    name: 'node:sqlite, parsed rows, no checks',
    run: (plants) =>
      withNewFile(bench, async (path) => {
        const command = [process.execPath, script, inputs.file('ndjson', plants), path]
        const run = await runCommand(bench, command)
        return { ...run, ...JSON.parse(run.stdout) }
      }),
  }
}

/** Removes the database when the work is done: rounds should not fill the disk. */
async function withNewFile(bench: Bench, work: (path: string) => Promise<Run>): Promise<Run> {
  const path = bench.newFile('import.db')
  try {
    return await work(path)
  } finally {
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
  }
}
