// What the access log costs: the service with it, and without.
import { createReadStream } from 'node:fs'
import { getList, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { atLeast, leastAtMost, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const work = 'GET ?limit=100, 32 connections, access log'
const newline = 10

export const accessLog: Scenario = {
  name: 'access-log',
  title: 'the access log',
  async run(bench) {
    const off = await startPlantStore(bench, { name: 'Plant Store, log off', env: { LOG_LEVEL: 'warn' } })
    const on = await startPlantStore(bench, { name: 'Plant Store, log on' })
    const servers = [off, on]
    const results = await measureRounds(
      bench,
      servers.map((server) => ({ server, request: getList, connections: 32 })),
    )
    const [without, withLog] = results as [Round[], Round[]]
    // A log that leaves lines out would be cheap.
    await on.stop()
    const lines = await countLines(on.logFile)
    return {
      rows: makeRows(work, servers, results, undefined),
      goals: [
        leastAtMost({ work, figure: 'CPU per request / log off' }, [withLog, without], reach.accessLogCpu),
        atLeast(work, 'lines per request', lines / on.answers, [1, 1]),
      ],
    }
  },
}

async function countLines(path: string): Promise<number> {
  let lines = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    for (const byte of chunk) if (byte === newline) lines++
  return lines
}
