// A disk that takes long to sync: whoever reads must not notice.
import { addPlant, getList, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { atMost } from '../goals.ts'
import { measure, measureBeside, medianOf, type Round, ratioOf } from '../rounds.ts'
import { slowSync, unableToSlow } from '../slow-sync.ts'
import type { Scenario } from './scenario.ts'

const syncMs = 20

const title = `GET ?limit=100 while an fsync takes ${syncMs} ms`

export const slowDisk: Scenario = {
  name: 'slow-disk',
  title,
  unable: unableToSlow,
  async run(bench) {
    const { rounds, roundMs, warmUpMs } = bench.options
    const server = await startPlantStore(bench, { under: slowSync(syncMs) })
    const contender = { server, request: getList, connections: 32 }
    const writers = { kind: 'requests', url: server.url, request: addPlant, connections: 64 } as const
    const alone: Round[] = []
    const beside: Round[] = []
    const writes: Round[] = []
    await measureBeside(bench, contender, warmUpMs, writers)
    for (let round = 0; round < rounds; round++) {
      bench.progress.step(round / rounds, `round ${round + 1}`)
      alone.push(await measure(bench, contender, roundMs))
      const both = await measureBeside(bench, contender, roundMs, writers)
      beside.push(both.round)
      writes.push(both.beside)
    }
    // What shows that the disk was slow at all.
    if (medianOf(writes, 'p50Ms') < syncMs) throw new Error(`the writers did not wait ${syncMs} ms`)
    const servers = ['Plant Store, no writers', 'Plant Store, 64 writers', 'the writers'].map((name) => ({
      name,
    }))
    const goal = atMost(title, 'p99, 64 writers / none', ratioOf(beside, alone, 'p99Ms'), [2, 1.2])
    return { rows: makeRows(title, servers, [alone, beside, writes], undefined), goals: [goal] }
  },
}
