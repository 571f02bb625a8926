// Interleaved rounds: each server in turn, over and over, so that what disturbs the machine disturbs all of them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from './bench.ts'
import type { Job, Result } from './load/job.ts'
import type { Load } from './load/load.ts'
import { subtractUsage } from './proc.ts'
import type { Server } from './server.ts'
import { isDisturbed, quietOnes, type Slice } from './slices.ts'

/** `load`: another generator than the bench's. `background`: what goes on beside it. */
export type Work = Omit<Job, 'url' | 'ms'> & { load?: Load; background?: Work }
type Contender = Work & { server: Server }

/**
 * Figures of one slice. `cpuUs`: processor time of the server per request, NaN where the system does not tell; `beside`:
 * the figures of the background.
 */
export type Figures = { cpuUs: number; perSecond: number; p50Ms: number; p99Ms: number; beside?: Figures }
export type Figure = Exclude<keyof Figures, 'beside'>
export type Round = Slice & Figures

/** Warms each taker up, then has all of them take slices round by round. The result is in their order. */
export async function interleave<T extends object>(
  bench: Bench,
  takers: { name: string; take(ms: number): Promise<T> }[],
  { rounds = bench.options.rounds, warmUp = true } = {},
): Promise<(T & Slice)[][]> {
  const { roundMs, warmUpMs } = bench.options
  const results = takers.map((): (T & Slice)[] => [])
  for (let round = warmUp ? 0 : 1; round <= rounds; round++)
    for (const [index, { name, take }] of takers.entries()) {
      const part = (round + index / takers.length) / (rounds + 1)
      bench.progress.step(part, `${name}, ${round === 0 ? 'warm-up' : `round ${round}`}`)
      if (round === 0) await take(warmUpMs)
      else results[index]?.push(await bench.slices.take(() => take(roundMs)))
    }
  return results
}

export function measureRounds(bench: Bench, contenders: Contender[]): Promise<Round[][]> {
  const takers = contenders.map((contender) => {
    return { name: contender.server.name, take: (ms: number) => measure(bench, contender, ms) }
  })
  return interleave(bench, takers)
}

/** How much longer the background load lasts than the round, on either side. */
const marginMs = 250

export async function measure(bench: Bench, contender: Contender, ms: number): Promise<Figures> {
  const { server, load = bench.load, background, ...job } = contender
  const { url } = server
  const beside = background && bench.background.run({ ...background, url, ms: ms + 2 * marginMs })
  if (beside) await sleep(marginMs)
  let before = server.usage()
  const begun = () => {
    before = server.usage()
  }
  const result = await load.run({ ...job, url, ms }, begun)
  const cpuUs = subtractUsage(server.usage(), before)
  server.answers += result.answers
  if (!beside) return toFigures(result, cpuUs)
  // What the server used is that of both loads together, and says nothing of either.
  return { ...toFigures(result, Number.NaN), beside: toFigures(await beside, Number.NaN) }
}

function toFigures({ answers, ms, p50Ms, p99Ms }: Result, cpuUs: number): Figures {
  return { cpuUs: cpuUs / answers, perSecond: answers / (ms / 1000), p50Ms, p99Ms }
}

/** One figure of the quiet slices. */
function valuesOf(rounds: Round[], figure: Figure): number[] {
  return quietOnes(rounds).map((round) => round[figure])
}

export function medianOf(rounds: Round[], figure: Figure): number {
  return median(valuesOf(rounds, figure))
}

export function leastOf(rounds: Round[], figure: Figure): number {
  return Math.min(...valuesOf(rounds, figure))
}

export function mostOf(rounds: Round[], figure: Figure): number {
  return Math.max(...valuesOf(rounds, figure))
}

/** The median of a figure's ratios, each within a round in which both slices were quiet. */
export function ratioOf(rounds: Round[], base: Round[], figure: Figure): number {
  const pairs = rounds.flatMap((round, index) => (base[index] ? [{ round, other: base[index] }] : []))
  const quiet = pairs.filter(({ round, other }) => !isDisturbed(round) && !isDisturbed(other))
  return median((quiet.length > 0 ? quiet : pairs).map(({ round, other }) => round[figure] / other[figure]))
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}
