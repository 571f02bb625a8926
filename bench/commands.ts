// Commands on many plants, beside programs that do no more than they must. The start of each is left out: it is measured
// with no plants at all, in the same round.
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type Bench, root } from './bench.ts'
import { type Finding, makeRow } from './findings.ts'
import { atMost, type Goal } from './goals.ts'
import { spawnPinned } from './processes.ts'
import { interleave, type Round, ratioOf } from './rounds.ts'

/** `cpuUs` and `peakMiB` are NaN for a program that cannot say. */
type Run = { ms: number; cpuUs: number; peakMiB: number }

type Command = { command: string[]; env?: NodeJS.ProcessEnv }

/**
 * `plan` prepares the work on so many plants, from scratch; what it writes goes to a path that is removed afterwards.
 * `read`: what the command says itself instead. `growth`: whether its memory may grow only so much.
 */
export type Contestant = {
  name: string
  plan(plants: number, path: string): Promise<Command>
  read?(output: string): Partial<Run>
  growth?: boolean
}

/** What many plants took more than none; a plant is a request. */
export type Net = Round & { peakMiB: number }

const mostRounds = 3
const fewPlants = 10_000

type BulkContest = {
  work: string
  contestants: Contestant[]
  judge(results: [Net[], Net[], Net[], Net[]]): Goal[]
}

/** Has each contestant do the work in turn, over and over. */
export async function compareCommands(bench: Bench, contest: BulkContest): Promise<Finding[]> {
  const { work, contestants, judge } = contest
  const { quick, rounds, listPlants } = bench.options
  const takers = contestants.map((one) => {
    return { name: one.name, take: () => measureNet(bench, one, listPlants) }
  })
  const count = quick ? 1 : Math.min(rounds, mostRounds)
  const nets = await interleave(bench, takers, { rounds: count, warmUp: false })
  const rows = contestants.map(({ name }, index) => makeRow(name, nets[index] ?? []))
  const found: Finding[] = [{ work, rows, goals: judge(nets as [Net[], Net[], Net[], Net[]]) }]
  for (const [index, contestant] of contestants.entries()) {
    if (!contestant.growth) continue
    const few = await measureNet(bench, contestant, fewPlants)
    const most = Math.max(...(nets[index] ?? []).map(({ peakMiB }) => peakMiB))
    const goals = [
      atMost('growth of memory', most, [64, 32], ' MiB'),
      atMost('growth of memory at 10,000', few.peakMiB, [64, 32], ' MiB'),
    ]
    found.push({ work: `${work}: ${contestant.name}`, goals })
  }
  return found
}

async function measureNet(bench: Bench, one: Contestant, plants: number): Promise<Omit<Net, 'others'>> {
  const [none, all] = [await runOnce(bench, one, 0), await runOnce(bench, one, plants)]
  return {
    cpuUs: (all.cpuUs - none.cpuUs) / plants,
    perSecond: plants / ((all.ms - none.ms) / 1000),
    peakMiB: all.peakMiB - none.peakMiB,
    p50Ms: Number.NaN,
    p99Ms: Number.NaN,
  }
}

/** The median of the ratios of the times, each within a round; NaN when noise hides it. */
export function timeRatio([ours, theirs]: [Net[], Net[]]): number {
  const ratio = ratioOf(theirs, ours, 'perSecond')
  return ratio > 0 ? ratio : Number.NaN
}

async function runOnce(bench: Bench, { plan, read }: Contestant, plants: number): Promise<Run> {
  const path = bench.newFile('written')
  try {
    const { output, ...run } = await runCommand(bench, await plan(plants, path))
    return { ...run, ...read?.(output) }
  } finally {
    // Rounds should not fill the disk.
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
  }
}

/** `plant-store ARGUMENTS` on the database at a URL. */
export function plantStore(databaseUrl: string, args: string[]): Command {
  const node = [process.execPath, '--min-semi-space-size=8', '--import', join(root, 'bench/peers/usage.ts')]
  const command = [...node, join(root, 'src/cli.ts'), ...args, '--quiet']
  return { command, env: { DATABASE_URL: databaseUrl } }
}

/** Runs a command on all processors. Throws when it fails. */
export async function runCommand(bench: Bench, { command, env }: Command): Promise<Run & { output: string }> {
  const start = performance.now()
  const child = spawnPinned(command, {
    cpus: bench.pins.all,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const outputs = child.stdio.slice(1).map((stream) => text(stream as Readable))
  const [code] = await once(child, 'exit')
  const ms = performance.now() - start
  const [output = '', stderr = '', usage] = await Promise.all(outputs)
  if (code !== 0)
    throw new Error(`${command.slice(0, 8).join(' ')} ended with ${code}: ${stderr.slice(0, 500)}`)
  const { cpuUs = Number.NaN, peakMiB = Number.NaN } = usage ? JSON.parse(usage) : {}
  return { ms, cpuUs, peakMiB, output }
}
