// What a scenario finds: rows of figures, and goals with what was reached.
import type { Goal } from './goals.ts'
import { leastOf, medianOf, type Round, ratioOf } from './rounds.ts'
import type { Server } from './server.ts'

export type Row = Omit<Round, 'others'> & {
  work: string
  server: string
  /** The least processor time per request of any slice. */
  leastCpuUs: number
  /** Processor time per request beside that of the bare server: least to least, and the median within the rounds. */
  ratio: number | undefined
  medianRatio: number | undefined
  /** Resident memory, where that is the question. */
  mib?: number
}

/** On a quiet machine the median of the slices is this little above their least. */
const steady = 1.25

/**
 * What to say of a processor that was slower at times, though nobody here took it: one that it is shared with, or its clock.
 * Undefined when it was steady.
 */
export function describeUnsteadiness(rows: Row[]): string | undefined {
  const measured = rows.filter(({ leastCpuUs }) => Number.isFinite(leastCpuUs))
  const unsteady = measured.filter(({ cpuUs, leastCpuUs }) => cpuUs > steady * leastCpuUs)
  if (unsteady.length * 4 <= measured.length) return undefined
  return (
    `THE PROCESSOR'S SPEED CHANGED MEANWHILE: in ${unsteady.length} of ${measured.length} rows most slices took more than ` +
    `${steady} times the least. Where the two ratios of a row are far apart, believe neither.`
  )
}

export type Findings = { rows: Row[]; goals: Goal[] }

/** The rows of one piece of work; `bare` is the index of the server that the others are compared with. */
export function makeRows(
  work: string,
  servers: Pick<Server, 'name'>[],
  results: Round[][],
  bare: number | undefined,
): Row[] {
  const base = bare === undefined ? undefined : results[bare]
  return servers.map(({ name }, index) => {
    const rounds = results[index] as Round[]
    return {
      work,
      server: name,
      cpuUs: medianOf(rounds, 'cpuUs'),
      leastCpuUs: leastOf(rounds, 'cpuUs'),
      perSecond: medianOf(rounds, 'perSecond'),
      p50Ms: medianOf(rounds, 'p50Ms'),
      p99Ms: medianOf(rounds, 'p99Ms'),
      sleeps: medianOf(rounds, 'sleeps'),
      clientSleeps: medianOf(rounds, 'clientSleeps'),
      clientCpuUs: medianOf(rounds, 'clientCpuUs'),
      ratio: base && leastOf(rounds, 'cpuUs') / leastOf(base, 'cpuUs'),
      medianRatio: base && ratioOf(rounds, base, 'cpuUs'),
    }
  })
}
