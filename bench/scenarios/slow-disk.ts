// A disk that takes long to sync: whoever reads must not notice. strace holds each fsync of the server back; the
// other system calls run at full speed (--seccomp-bpf).
import { addPlant, getList, startPlantStore } from '../contenders.ts'
import { atMost, makeRows } from '../findings.ts'
import { isInstalled } from '../processes.ts'
import { measure, type Round, ratioOf } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const syncMs = 20
const calls = 'fsync,fdatasync'
const strace = ['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', `trace=${calls}`]
const slow = [...strace, '-e', `inject=${calls}:delay_exit=${syncMs}ms`]

export const slowDisk: Scenario = {
  name: 'slow-disk',
  title: `GET ?limit=100 while an fsync takes ${syncMs} ms`,
  unable: () => (isInstalled('strace') ? undefined : 'strace is not installed, which makes the disk slow'),
  async run(bench) {
    const { rounds, roundMs, warmUpMs } = bench.options
    const server = await startPlantStore(bench, { under: slow })
    const contender = { server, request: getList, connections: 32 }
    const writers = { kind: 'requests', url: server.url, request: addPlant, connections: 64 } as const
    const alone: Round[] = []
    const beside: Round[] = []
    await measure(bench, contender, warmUpMs, writers)
    for (let round = 0; round < rounds; round++) {
      bench.progress.step(round / rounds, `round ${round + 1}`)
      alone.push(await measure(bench, contender, roundMs))
      beside.push(await measure(bench, contender, roundMs, writers))
    }
    const servers = ['no writers', '64 writers'].map((name) => ({ name: `Plant Store, ${name}` }))
    const goal = atMost(this.title, 'p99, 64 writers / none', ratioOf(beside, alone, 'p99Ms'), [2, 1.2])
    return { rows: makeRows(this.title, servers, [alone, beside], undefined), goals: [goal] }
  },
}
