// Interleaved rounds: each server in turn, over and over, so that what disturbs the machine disturbs all of them.
// What is reported are medians, and medians of the ratios within a round.
import type { Bench } from './bench.ts'
import type { Job, RequestKind, Result } from './load/job.ts'
import type { Server } from './server.ts'

export type Contender = { server: Server; request: RequestKind; connections: number }

/** `cpuUs`: processor time a request. It is NaN where the system does not tell. */
export type Round = { cpuUs: number; perSecond: number; p50Ms: number; p99Ms: number }

export type Background = Omit<Extract<Job, { ms?: number }>, 'ms'>

/** How much longer the background load lasts than the round, on either side. */
const marginMs = 250

/** Warms each contender up, then measures all of them round by round. The result is in their order. */
export async function measureRounds(bench: Bench, contenders: Contender[]): Promise<Round[][]> {
  const { rounds, roundMs, warmUpMs } = bench.options
  const results: Round[][] = contenders.map(() => [])
  for (let round = 0; round <= rounds; round++)
    for (const [index, contender] of contenders.entries()) {
      const part = (round + index / contenders.length) / (rounds + 1)
      bench.progress.step(part, `${contender.server.name}, ${round === 0 ? 'warm-up' : `round ${round}`}`)
      const measured = await measure(bench, contender, round === 0 ? warmUpMs : roundMs)
      if (round > 0) results[index]?.push(measured)
    }
  return results
}

/** One round of one contender. */
export async function measure(
  bench: Bench,
  { server, request, connections }: Contender,
  ms: number,
): Promise<Round> {
  const kind = bench.options.generator === 'own' ? 'requests' : 'autocannon'
  const before = server.cpuUs() ?? Number.NaN
  const result = await bench.load.run({ kind, url: server.url, request, connections, ms })
  return toRound(result, (server.cpuUs() ?? Number.NaN) - before)
}

/** One round while another load is there; resolves to what was measured of both. */
export async function measureBeside(
  bench: Bench,
  contender: Contender,
  ms: number,
  background: Background,
): Promise<{ round: Round; beside: Round }> {
  const beside = bench.background.run({ ...background, ms: ms + 2 * marginMs } as Job)
  await new Promise((resolve) => setTimeout(resolve, marginMs))
  const round = await measure(bench, contender, ms)
  // The processor time is that of both loads together, and says nothing of either.
  return { round: { ...round, cpuUs: Number.NaN }, beside: toRound(await beside, Number.NaN) }
}

function toRound({ answers, ms, p50Ms, p99Ms }: Result, cpuUs: number): Round {
  return { cpuUs: cpuUs / answers, perSecond: answers / (ms / 1000), p50Ms, p99Ms }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The median of one figure over the rounds. */
export function medianOf(rounds: Round[], figure: keyof Round): number {
  return median(rounds.map((round) => round[figure]))
}

/** The least of a figure held against the least of another: what a busy neighbour disturbs least. */
export function minimaRatio(rounds: Round[], base: Round[], figure: keyof Round): number {
  const least = (all: Round[]) => Math.min(...all.map((round) => round[figure]))
  return least(rounds) / least(base)
}

/** The median of a figure's ratios, each within one round. */
export function ratioOf(rounds: Round[], base: Round[], figure: keyof Round): number {
  return median(rounds.map((round, index) => round[figure] / (base[index]?.[figure] ?? Number.NaN)))
}
