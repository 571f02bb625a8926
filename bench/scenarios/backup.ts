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
import { atMost, type Goal } from '../findings.ts'
import type { Scenario } from './scenario.ts'

export const backup: Scenario = {
  name: 'backup',
  title: 'backup and verify',
  async run(bench) {
    const inputs = new Inputs(bench)
    const contestants = [copier(bench, inputs), cp(bench, inputs), verifier(bench, inputs)]
    const [ours, theirs, check] = contestants as [Contestant, Contestant, Contestant]
    const nets = await compareBulk(bench, contestants)
    const count = bench.options.listPlants.toLocaleString('en')
    const [copying, checking] = [`backup of ${count} plants`, `verify of ${count} plants`]
    const rows = [
      ...makeBulkRows(bench, copying, [ours, theirs], nets),
      ...makeBulkRows(bench, checking, [check], nets.slice(2)),
    ]
    const rate: Goal = {
      work: checking,
      figure: 'plants/s',
      value: rows.at(-1)?.perSecond ?? Number.NaN,
      unit: '',
      target: 500_000,
      aim: 1_000_000,
      more: true,
    }
    return {
      rows,
      goals: [
        atMost(copying, 'time / cp', timeRatio(nets), [2, 1.5]),
        ...(await growthGoals(copying, ours, nets[0] as Net[])),
        rate,
        ...(await growthGoals(checking, check, nets[2] as Net[])),
      ],
    }
  },
}

function copier(bench: Bench, inputs: Inputs): Contestant {
  return {
    name: 'Plant Store',
    async run(plants) {
      const file = bench.newFile('backup')
      const done = await runPlantStore(bench, await inputs.store(plants), ['backup', file, '--quiet'])
      rmSync(file)
      return done
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
