// What a scenario finds: rows of figures, and goals with what was reached.
import { medianOf, type Round, ratioOf } from './rounds.ts'
import type { Server } from './server.ts'

export type Row = Round & {
  work: string
  server: string
  /** Processor time a request, beside that of the bare server in the same rounds. */
  ratio: number | undefined
}

export type Goal = {
  work: string
  figure: string
  value: number
  unit: string
  /** What has to be reached, and what one would like to. */
  target: number
  aim: number
  /** Whether more is better. */
  more: boolean
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
      perSecond: medianOf(rounds, 'perSecond'),
      p50Ms: medianOf(rounds, 'p50Ms'),
      p99Ms: medianOf(rounds, 'p99Ms'),
      ratio: base && ratioOf(rounds, base, 'cpuUs'),
    }
  })
}

/** A goal for a ratio: at most `target` times as much. */
export function atMost(work: string, figure: string, value: number, [target, aim]: [number, number]): Goal {
  return { work, figure, value, unit: '×', target, aim, more: false }
}

/** A goal for a ratio: at least `target` times as much. */
export function atLeast(work: string, figure: string, value: number, [target, aim]: [number, number]): Goal {
  return { work, figure, value, unit: '×', target, aim, more: true }
}

export function isMet({ value, target, more }: Goal): boolean {
  return more ? value >= target : value <= target
}
