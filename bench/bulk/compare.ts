// Commands on many plants, beside programs that do no more than they must. The start of each is left out: it is measured
// with no plants at all, in the same round.
import type { Bench } from '../bench.ts'
import type { Row } from '../findings.ts'
import type { Goal } from '../goals.ts'
import { median } from '../rounds.ts'
import { quietOnes, type Slice } from '../slices.ts'
import type { Run } from './command.ts'

/** `run` does the work on so many plants, from scratch. */
export type Contestant = { name: string; run(plants: number): Promise<Run> }

/** What many plants took more than none. */
export type Net = Slice & { ms: number; cpuUs: number; peakMiB: number }

const mostRounds = 3
const fewPlants = 10_000

/** Each contestant in turn, over and over; the result is in their order. */
export async function compareBulk(bench: Bench, contestants: Contestant[]): Promise<Net[][]> {
  const rounds = bench.options.quick ? 1 : Math.min(bench.options.rounds, mostRounds)
  const results: Net[][] = contestants.map(() => [])
  for (let round = 0; round < rounds; round++)
    for (const [index, contestant] of contestants.entries()) {
      const part = (round + index / contestants.length) / rounds
      bench.progress.step(part, `${contestant.name}, round ${round + 1}`)
      results[index]?.push(await measureNet(bench, contestant, bench.options.listPlants))
    }
  return results
}

function measureNet({ slices }: Bench, { run }: Contestant, plants: number): Promise<Net> {
  return slices.take(async () => {
    const [none, all] = [await run(0), await run(plants)]
    return {
      ms: all.ms - none.ms,
      cpuUs: all.cpuUs - none.cpuUs,
      peakMiB: all.peakMiB - none.peakMiB,
    }
  })
}

/** A row per contestant; a plant is a request. */
export function makeBulkRows(bench: Bench, work: string, contestants: Contestant[], nets: Net[][]): Row[] {
  const plants = bench.options.listPlants
  return contestants.map(({ name }, index) => {
    const quiet = quietOnes(nets[index] as Net[])
    const of = (figure: keyof Net) => quiet.map((net) => net[figure])
    return {
      work,
      server: name,
      cpuUs: median(of('cpuUs')) / plants,
      leastCpuUs: Math.min(...of('cpuUs')) / plants,
      perSecond: plants / (median(of('ms')) / 1000),
      p50Ms: Number.NaN,
      p99Ms: Number.NaN,
      sleeps: Number.NaN,
      clientSleeps: Number.NaN,
      clientCpuUs: Number.NaN,
      ratio: undefined,
      medianRatio: undefined,
    }
  })
}

/** The median of the ratios of the first contestant to the second, each within a round; NaN when noise hides it. */
export function timeRatio([ours = [], theirs = []]: Net[][]): number {
  const ratio = median(ours.map(({ ms }, round) => ms / (theirs[round]?.ms ?? Number.NaN)))
  return ratio > 0 ? ratio : Number.NaN
}

/** How much more memory many plants need than none: at the scenario's number, and at 10,000. */
export async function growthGoals(
  bench: Bench,
  work: string,
  [ours, nets]: [Contestant, Net[]],
): Promise<Goal[]> {
  const few = await measureNet(bench, ours, fewPlants)
  const goal = { figure: 'growth of memory', unit: ' MiB', target: 64, aim: 32, more: false }
  return [
    { ...goal, work, value: Math.max(...nets.map(({ peakMiB }) => peakMiB)) },
    { ...goal, work: `${work}: the same of 10,000`, value: few.peakMiB },
  ]
}
