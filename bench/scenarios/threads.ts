// One HTTP thread beside two, on all processors, with the load beside them: what the second brings, and what memory it
// takes.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { type Bench, root } from '../bench.ts'
import { addPlant, getList, startPlantStore } from '../contenders.ts'
import { type Findings, makeRows } from '../findings.ts'
import { atMostMiB, rateAtLeast, reach } from '../goals.ts'
import { Load } from '../load/load.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Server } from '../server.ts'
import type { Scenario } from './scenario.ts'

const works = [
  { title: 'GET ?limit=100, 64 connections, all processors', request: getList, wanted: reach.threadsList },
  { title: 'POST, 64 connections, all processors', request: addPlant, wanted: reach.threadsAdd },
]

export const threads: Scenario = {
  name: 'threads',
  title: 'one thread beside two',
  unable: () => (knowsThreads() ? undefined : 'this checkout has no setting THREADS'),
  async run(bench) {
    const load = new Load(bench.pins.all)
    const [one, two] = [await start(bench, 1), await start(bench, 2)]
    if (two.countListeners() === 1)
      throw new Error('with THREADS=2 only one socket listens: it is ignored here')
    const findings: Findings = { rows: [], goals: [] }
    for (const { title, request, wanted } of works) {
      const contenders = [one, two].map((server) => ({ server, request, connections: 64, load }))
      const results = await measureRounds(bench, contenders)
      const [alone, both] = results as [Round[], Round[]]
      findings.rows.push(...makeRows(title, [one, two], results, undefined))
      findings.goals.push(
        rateAtLeast({ work: title, figure: 'requests/s / one thread' }, [both, alone], wanted),
      )
    }
    await load.end()
    // After the same load: a thread that has done nothing yet has most of its memory still to come.
    const [less = Number.NaN, more = Number.NaN] = [one.residentMiB(), two.residentMiB()]
    findings.goals.push(atMostMiB('two threads', 'memory of the second', more - less, reach.threadMiB))
    return findings
  },
}

function start(bench: Bench, count: number): Promise<Server> {
  const name = count === 1 ? 'Plant Store, 1 thread' : `Plant Store, ${count} threads`
  return startPlantStore(bench, { name, env: { THREADS: `${count}` }, cpus: bench.pins.all })
}

/** Unknown settings are disregarded, so a server would not say so. */
function knowsThreads(): boolean {
  const command = [join(root, 'src/cli.ts'), 'config']
  return execFileSync(process.execPath, command, { encoding: 'utf8' }).includes('THREADS')
}
