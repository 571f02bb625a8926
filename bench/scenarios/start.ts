// The start of the service beside that of the bare server: processor time until it has come to rest, time until it can
// be reached, and memory at rest. A start is a request.
import { setTimeout as sleep } from 'node:timers/promises'
import { startPlain, startPlantStore } from '../contenders.ts'
import { makeRows, type Row } from '../findings.ts'
import { atMost, leastAtMost, reach } from '../goals.ts'
import { subtractUsage } from '../proc.ts'
import type { Round } from '../rounds.ts'
import type { Server } from '../server.ts'
import type { Slice } from '../slices.ts'
import type { Scenario } from './scenario.ts'

/** What is put off until after the ready line belongs to the start all the same. */
const restMs = 500

type Start = Round & { mib: number }

const work = 'start'

export const start: Scenario = {
  name: 'start',
  title: 'start and rest',
  async run(bench) {
    const starters = [
      { name: 'bare node:http', begin: () => startPlain(bench) },
      { name: 'Plant Store', begin: () => startPlantStore(bench) },
    ]
    const results: Start[][] = starters.map(() => [])
    for (let round = 0; round <= bench.options.starts; round++)
      for (const [index, { name, begin }] of starters.entries()) {
        bench.progress.step(round / (bench.options.starts + 1), `${name}, start ${round}`)
        const measured = await bench.slices.take(() => measureStart(begin))
        // The first start of all may fill caches.
        if (round > 0) results[index]?.push(measured)
      }
    const [bare, ours] = results as [Start[], Start[]]
    const memory = leastMiB(ours) / leastMiB(bare)
    return {
      rows: makeRows(work, starters, results, 0).map((row, index) => withMiB(row, results[index] as Start[])),
      goals: [
        leastAtMost({ work, figure: 'CPU / bare' }, [ours, bare], reach.startCpu),
        atMost('at rest', 'memory / bare', memory, reach.restMiB),
      ],
    }
  },
}

async function measureStart(begin: () => Promise<Server>): Promise<Omit<Start, keyof Slice>> {
  const startMs = performance.now()
  const server = await begin()
  const ms = performance.now() - startMs
  await sleep(restMs)
  const { cpuUs, sleeps } = subtractUsage(server.usage())
  const mib = server.residentMiB() ?? Number.NaN
  await server.stop()
  const none = { p99Ms: Number.NaN, clientSleeps: Number.NaN, clientCpuUs: Number.NaN }
  return { ...none, cpuUs, sleeps, mib, perSecond: 1000 / ms, p50Ms: ms }
}

function leastMiB(starts: Start[]): number {
  return Math.min(...starts.map(({ mib }) => mib))
}

function withMiB(row: Row, starts: Start[]): Row {
  return { ...row, mib: leastMiB(starts) }
}
