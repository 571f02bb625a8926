// What has to be reached, and how it is judged. Processor time and the time of a whole list are judged by the ratio of
// minima, which no neighbour can flatter and none disturbs for long; rates and percentiles by the median ratio.
import { type Figure, leastOf, medianOf, mostOf, type Round, ratioOf } from './rounds.ts'

export type Goal = {
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
  /** Why the machine allows no judgement. Such a goal does not count. */
  unjudged?: string
}

/** What has to be reached, and the aim. */
export type Reach = readonly [target: number, aim: number]

/** A value of at most `target`, a ratio unless it has a unit. */
export function atMost(figure: string, value: number, [target, aim]: Reach, unit = '×'): Goal {
  return { figure, value, unit, target, aim, more: false }
}

/** A value of at least `target`, a ratio unless it has a unit. */
export function atLeast(figure: string, value: number, reach: Reach, unit = '×'): Goal {
  return { ...atMost(figure, value, reach, unit), more: true }
}

/** The least of a figure beside the least of another server: at most `target` times as much. */
export function leastAtMost(
  figure: string,
  [ours, base]: [Round[], Round[]],
  reach: Reach,
  by: Figure = 'cpuUs',
): Goal {
  const beside = { name: 'median', value: ratioOf(ours, base, by) } as const
  return { ...atMost(figure, leastOf(ours, by) / leastOf(base, by), reach), beside }
}

/** How many µs more the least processor time per request is than that of another server: at most `target`. */
export function leastMoreAtMost(figure: string, [ours, base]: [Round[], Round[]], reach: Reach): Goal {
  const more = (pick: typeof leastOf) => pick(ours, 'cpuUs') - pick(base, 'cpuUs')
  const beside = { name: 'median', value: more(medianOf) } as const
  return { ...atMost(`${figure} more`, more(leastOf), reach, ' µs'), beside }
}

/** Requests per second beside those of another server: at least `target` times as many. */
export function rateAtLeast(figure: string, [ours, base]: [Round[], Round[]], reach: Reach): Goal {
  const best = mostOf(ours, 'perSecond') / mostOf(base, 'perSecond')
  const beside = { name: 'best', value: best } as const
  return { ...atLeast(figure, ratioOf(ours, base, 'perSecond'), reach), beside }
}

export function isMet({ value, target, more }: Goal): boolean {
  return more ? value >= target : value <= target
}
