// The start of the service beside that of the bare server: processor time until it has come to rest, time until it can
// be reached, and memory at rest. A start is a request.
import { setTimeout as sleep } from 'node:timers/promises'
import { startPeer, startPlantStore } from '../contenders.ts'
import { makeRow, type Scenario } from '../findings.ts'
import { atMost, leastAtMost } from '../goals.ts'
import { subtractUsage } from '../proc.ts'
import { type Figures, interleave } from '../rounds.ts'
import type { Server } from '../server.ts'

/** What is put off until after the ready line belongs to the start all the same. */
const restMs = 500

type Start = Figures & { mib: number }

const names = ['bare node:http', 'Plant Store'] as const

export const start: Scenario = {
  name: 'start',
  title: 'start and rest',
  async run(bench) {
    // The first start of all may fill caches: it is the warm-up.
    const begin = [() => startPeer(bench, names[0], 'plain.js'), () => startPlantStore(bench)]
    const takers = begin.map((one, index) => ({ name: `${names[index]}`, take: () => measureStart(one) }))
    const [bare = [], ours = []] = await interleave(bench, takers, { rounds: bench.options.starts })
    const [bareMiB, oursMiB] = [leastMiB(bare), leastMiB(ours)]
    const rows = [
      { ...makeRow(names[0], bare, bare), mib: bareMiB },
      { ...makeRow(names[1], ours, bare), mib: oursMiB },
    ]
    return [
      { work: 'start', rows, goals: [leastAtMost('CPU / bare', [ours, bare], [7, 5])] },
      { work: 'at rest', goals: [atMost('memory / bare', oursMiB / bareMiB, [2.1, 1.8])] },
    ]
  },
}

function leastMiB(starts: Start[]): number {
  return Math.min(...starts.map(({ mib }) => mib))
}

async function measureStart(begin: () => Promise<Server>): Promise<Start> {
  const startMs = performance.now()
  const server = await begin()
  const ms = performance.now() - startMs
  await sleep(restMs)
  const cpuUs = subtractUsage(server.usage())
  const mib = server.memoryMiB()
  await server.stop()
  return { cpuUs, mib, perSecond: 1000 / ms, p50Ms: ms, p99Ms: Number.NaN }
}
