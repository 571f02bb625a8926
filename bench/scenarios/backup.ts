// backup of a SQLite store beside cp, and verify of it.
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
import { atMost, type Goal } from '../goals.ts'
import type { Scenario } from './scenario.ts'

export const backup: Scenario = {
  name: 'backup',
  title: 'backup and verify',
  async run(bench) {
    const inputs = new Inputs(bench)
    const [whole, copy, check] = [backer(bench, inputs), copier(bench, inputs), verifier(bench, inputs)]
    const contestants = [whole, copy, cp(bench, inputs), check]
    const nets = await compareBulk(bench, contestants)
    const [ofWhole, ofCopy, ofCp, ofCheck] = nets as [Net[], Net[], Net[], Net[]]
    const count = bench.options.listPlants.toLocaleString('en')
    const [copying, checking] = [`backup of ${count} plants`, `verify of ${count} plants`]
    const rows = [
      ...makeBulkRows(bench, copying, contestants.slice(0, 3), nets),
      ...makeBulkRows(bench, checking, [check], [ofCheck]),
    ]
    return {
      rows,
      goals: [
        atMost(copying, 'time of the copy / cp', timeRatio([ofCopy, ofCp]), [2, 1.5]),
        atMost(copying, 'with its check / cp', timeRatio([ofWhole, ofCp]), [2, 1.5]),
        ...(await growthGoals(bench, copying, [whole, ofWhole])),
        rateGoal(checking, rows.at(-1)?.perSecond ?? Number.NaN),
        ...(await growthGoals(bench, checking, [check, ofCheck])),
      ],
    }
  },
}

function rateGoal(work: string, value: number): Goal {
  return { work, figure: 'plants/s', value, unit: '', target: 500_000, aim: 1_000_000, more: true }
}

function backer(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'Plant Store, copied and checked',
    async run(plants) {
      const file = bench.newFile('backup')
      const done = await runPlantStore(bench, await inputs.store(plants), [
        'backup',
        file,
        '--quiet',
        '--json',
      ])
      rmSync(file)
      return done
    },
  }
}

/** The same, of which only the copy counts, to stable storage. */
function copier(bench: Bench, inputs: Inputs): Contestant {
  const { run } = backer(bench, inputs)
  return {
    name: 'Plant Store, the copy alone',
    async run(plants) {
      const done = await run(plants)
      return { ...done, ms: JSON.parse(done.stdout).copySeconds * 1000, cpuUs: Number.NaN }
    },
  }
}

function cp(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'cp',
    async run(plants) {
      const file = bench.newFile('copy')
      const done = await runCommand(bench, ['cp', fileURLToPath(await inputs.store(plants)), file])
      rmSync(file)
      return done
    },
  }
}

function verifier(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'Plant Store',
    run: async (plants) => runPlantStore(bench, await inputs.store(plants), ['verify', '--quiet']),
  }
}
