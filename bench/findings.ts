// A scenario, and what it finds: rows of figures, and goals with what was reached.
import type { Bench } from './bench.ts'
import type { Goal } from './goals.ts'
import { type Figures, leastOf, measureRounds, medianOf, type Round, ratioOf, type Work } from './rounds.ts'
import type { Server } from './server.ts'

/** One piece of work that is measured. `name`: as `--only` takes it; `unable`: why it cannot be measured here. */
export type Scenario = {
  name: string
  title: string
  unable?(bench: Bench): string | undefined
  run(bench: Bench): Promise<Finding[]>
}

export type Finding = { work: string; rows?: Row[]; goals: Goal[] }

export type Row = Omit<Figures, 'beside'> & {
  server: string
  /** The least processor time per request of any slice. */
  leastCpuUs: number
  /** Processor time per request beside that of the bare server: least to least, and the median within the rounds. */
  ratio: number | undefined
  medianRatio: number | undefined
  /** Resident memory, where that is the question. */
  mib?: number
}

/** Work that servers do in turn, and how their results, which come in their order, are judged. */
export type Contest = Work & {
  work: string
  servers: Server[]
  /** What is otherwise for each server. */
  each?: Partial<Work>[]
  /** Whether the others are compared with the first. */
  floor?: boolean
  judge?(results: Results): Goal[]
}

/** As many as there are servers. */
export type Results = [Round[], Round[], Round[], Round[]]

/** Measures one contest after the other, each in interleaved rounds. */
export async function compare(bench: Bench, ...contests: Contest[]): Promise<Finding[]> {
  const found: Finding[] = []
  for (const { work, servers, each, floor, judge, ...load } of contests) {
    const contenders = servers.map((server, index) => ({ server, ...load, ...each?.[index] }))
    const results = await measureRounds(bench, contenders)
    const rows = servers.map(({ name }, index) => makeRow(name, results[index] ?? [], floor && results[0]))
    found.push({ work, rows, goals: judge?.(results as Results) ?? [] })
  }
  return found
}

/** `base`: the rounds of the server that this one is compared with. */
export function makeRow(server: string, rounds: Round[], base?: Round[] | false): Row {
  return {
    server,
    cpuUs: medianOf(rounds, 'cpuUs'),
    perSecond: medianOf(rounds, 'perSecond'),
    p50Ms: medianOf(rounds, 'p50Ms'),
    p99Ms: medianOf(rounds, 'p99Ms'),
    leastCpuUs: leastOf(rounds, 'cpuUs'),
    ratio: base ? leastOf(rounds, 'cpuUs') / leastOf(base, 'cpuUs') : undefined,
    medianRatio: base ? ratioOf(rounds, base, 'cpuUs') : undefined,
  }
}

/** On a quiet machine the median of the slices is this little above their least. */
const steady = 1.25

/**
 * A warning when the processor was slower at times, though nobody here took it: one that it is shared with, or its clock.
 * Undefined when it was steady.
 */
export function describeUnsteadiness(rows: Row[]): string | undefined {
  const measured = rows.filter(({ leastCpuUs }) => Number.isFinite(leastCpuUs))
  const unsteady = measured.filter(({ cpuUs, leastCpuUs }) => cpuUs > steady * leastCpuUs)
  if (unsteady.length * 4 <= measured.length) return undefined
  const rate = `in ${unsteady.length} of ${measured.length} rows most slices took more than ${steady} times the least`
  return `THE PROCESSOR'S SPEED CHANGED MEANWHILE: ${rate}. Where the two ratios of a row are far apart, believe neither.`
}
