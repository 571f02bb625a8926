// What has to be reached, and how it is judged. Processor time and the time of a whole list are judged by the ratio of
// minima, which no neighbour can flatter and none disturbs for long; rates and percentiles by the median ratio.
import { type Figure, leastOf, mostOf, type Round, ratioOf } from './rounds.ts'

export type Goal = {
  work: string
  figure: string
  /** What counts. */
  value: number
  /** The same ratio taken otherwise: the median where the least counts, the best where the median does. */
  beside?: { name: 'median' | 'best'; value: number }
  unit: string
  /** What has to be reached, and what one would like to. */
  target: number
  aim: number
  /** Whether more is better. */
  more: boolean
}

/** What has to be reached, and the aim. */
export type Reach = readonly [target: number, aim: number]

/** What is held against the bare server, or against the service itself under other circumstances. */
export const reach = {
  listCpu: [1.35, 1.15],
  unchangedCpu: [1.35, 1.1],
  addCpu: [1.5, 1.25],
  accessLogCpu: [1.08, 1.04],
  threadsList: [1.4, 1.8],
  threadsAdd: [1.05, 1.3],
  threadMiB: [90, 60],
  wholeListTime: [1.9, 1.2],
  growthMiB: [32, 16],
  postgresListBefore: [0.75, 0.5],
  postgresList: [0.9, 1],
  codedCpu: [1.05, 1],
  codedBytes: [0.3, 0.25],
  zstdBytes: [0.25, 0.2],
  zstdTime: [2.5, 1.5],
  startCpu: [7, 5],
  restMiB: [2.1, 1.8],
  lightLoadCpu: [1.2, 1.05],
} as const satisfies Record<string, Reach>

/** A goal for a ratio: at most `target` times as much. */
export function atMost(work: string, figure: string, value: number, [target, aim]: Reach): Goal {
  return { work, figure, value, unit: '×', target, aim, more: false }
}

/** A goal for a ratio: at least `target` times as much. */
export function atLeast(work: string, figure: string, value: number, [target, aim]: Reach): Goal {
  return { work, figure, value, unit: '×', target, aim, more: true }
}

/** A goal for megabytes. */
export function atMostMiB(work: string, figure: string, value: number, [target, aim]: Reach): Goal {
  return { work, figure, value, unit: ' MiB', target, aim, more: false }
}

/** A goal for the least of a figure beside the least of another: at most `target` times as much. */
export function leastAtMost(
  { work, figure, by = 'cpuUs' }: { work: string; figure: string; by?: Figure },
  [ours, base]: [Round[], Round[]],
  wanted: Reach,
): Goal {
  const value = leastOf(ours, by) / leastOf(base, by)
  const beside = { name: 'median', value: ratioOf(ours, base, by) } as const
  return { ...atMost(work, figure, value, wanted), beside }
}

/** A goal for requests per second beside those of another: at least `target` times as many. */
export function rateAtLeast(
  { work, figure }: { work: string; figure: string },
  [ours, base]: [Round[], Round[]],
  wanted: Reach,
): Goal {
  const value = ratioOf(ours, base, 'perSecond')
  const beside = { name: 'best', value: mostOf(ours, 'perSecond') / mostOf(base, 'perSecond') } as const
  return { ...atLeast(work, figure, value, wanted), beside }
}

export function isMet({ value, target, more }: Goal): boolean {
  return more ? value >= target : value <= target
}
