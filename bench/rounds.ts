// Interleaved rounds: each server in turn, over and over, so that what disturbs the machine disturbs all of them.
import type { Bench } from './bench.ts'
import type { Job, Mix, RequestKind, Result } from './load/job.ts'
import type { Load } from './load/load.ts'
import { subtractUsage, type Used } from './proc.ts'
import type { Server } from './server.ts'
import { isDisturbed, quietOnes, type Slice } from './slices.ts'

/** `lists`: whole answers are pulled, so many in a slice. `load`: another generator than the bench's. */
export type Contender = {
  server: Server
  request: RequestKind
  connections: number
  perSecond?: number
  mix?: Mix
  lists?: number
  load?: Load
}

/**
 * What one slice tells. `cpuUs`: processor time of the server per request; `sleeps`, `clientSleeps`: how often, per
 * request, the server and the load generator went to sleep and had to be woken; `clientCpuUs`: processor time of the load
 * generator. NaN where the system does not tell.
 */
export type Round = Slice & {
  cpuUs: number
  perSecond: number
  p50Ms: number
  p99Ms: number
  sleeps: number
  clientSleeps: number
  clientCpuUs: number
}

export type Figure = Exclude<keyof Round, 'others'>

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
      if (round === 0) await measureOnce(bench, contender, warmUpMs)
      else results[index]?.push(await measure(bench, contender, roundMs))
    }
  return results
}

/** One slice of one contender, in which others were quiet if they ever are. */
export function measure(bench: Bench, contender: Contender, ms: number): Promise<Round> {
  return bench.slices.take(() => measureOnce(bench, contender, ms))
}

/** One slice while another load is there; resolves to what was measured of both. */
export async function measureBeside(
  bench: Bench,
  contender: Contender,
  ms: number,
  background: Background,
): Promise<{ round: Round; beside: Round }> {
  const { others, ...both } = await bench.slices.take(async () => {
    const beside = bench.background.run({ ...background, ms: ms + 2 * marginMs } as Job)
    await new Promise((resolve) => setTimeout(resolve, marginMs))
    const round = await measureOnce(bench, contender, ms)
    return { round, beside: toRound(await beside, unknown, unknown) }
  })
  // The processor time is that of both loads together, and says nothing of either.
  const round = { ...both.round, cpuUs: Number.NaN, sleeps: Number.NaN, others }
  return { round, beside: { ...both.beside, others } }
}

async function measureOnce(bench: Bench, contender: Contender, ms: number): Promise<Omit<Round, 'others'>> {
  const { server, load = bench.load } = contender
  const [before, clientBefore] = [server.usage(), load.usage()]
  const result = await load.run(toJob(bench, contender, ms))
  server.answers += result.answers
  return toRound(result, subtractUsage(server.usage(), before), subtractUsage(load.usage(), clientBefore))
}

function toJob({ options }: Bench, contender: Contender, ms: number): Job {
  const { server, request, connections, lists, perSecond, mix } = contender
  const job = { url: server.url, request, connections }
  if (lists !== undefined) return { kind: 'pull', times: lists, ...job }
  if (perSecond !== undefined) return { kind: 'requests', ms, perSecond, ...job }
  if (mix) return { kind: 'requests', ms, mix, ...job }
  return { kind: options.generator === 'own' ? 'requests' : 'autocannon', ms, ...job }
}

const unknown: Used = { cpuUs: Number.NaN, sleeps: Number.NaN }

function toRound({ answers, ms, p50Ms, p99Ms }: Result, used: Used, client: Used): Omit<Round, 'others'> {
  return {
    cpuUs: used.cpuUs / answers,
    perSecond: answers / (ms / 1000),
    p50Ms,
    p99Ms,
    sleeps: used.sleeps / answers,
    clientSleeps: client.sleeps / answers,
    clientCpuUs: client.cpuUs / answers,
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The median of one figure over the quiet slices. */
export function medianOf(rounds: Round[], figure: Figure): number {
  return median(quietOnes(rounds).map((round) => round[figure]))
}

/** The least of one figure over the quiet slices. */
export function leastOf(rounds: Round[], figure: Figure): number {
  return Math.min(...quietOnes(rounds).map((round) => round[figure]))
}

/** The most of one figure over the quiet slices. */
export function mostOf(rounds: Round[], figure: Figure): number {
  return Math.max(...quietOnes(rounds).map((round) => round[figure]))
}

/** The median of a figure's ratios, each within a round in which both slices were quiet. */
export function ratioOf(rounds: Round[], base: Round[], figure: Figure): number {
  const pairs = rounds.flatMap((round, index) => (base[index] ? [{ round, other: base[index] }] : []))
  const quiet = pairs.filter(({ round, other }) => !isDisturbed(round) && !isDisturbed(other))
  const ratios = (quiet.length > 0 ? quiet : pairs).map(({ round, other }) => round[figure] / other[figure])
  return median(ratios)
}
