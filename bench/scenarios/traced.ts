// What traces cost a request, and what a collector that is away costs it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pages, startPlantStore } from '../contenders.ts'
import { compare, type Scenario } from '../findings.ts'
import { atMost, leastMoreAtMost } from '../goals.ts'

export const traces: Scenario = {
  name: 'traces',
  title: 'GET ?limit=100 with traces, 32 connections',
  async run(bench) {
    const collector = createServer((request, response) => {
      request.resume().on('end', () => response.end())
    }).listen(0, '127.0.0.1')
    await once(collector, 'listening')
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
    const start = (name: string, share: string, endpoint = url) =>
      startPlantStore(bench, {
        name: `traces, ${name}`,
        env: {
          OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
          OTEL_TRACES_SAMPLER: 'traceidratio',
          OTEL_TRACES_SAMPLER_ARG: share,
        },
      })
    // Nobody listens on the port of discarded bytes (RFC 863).
    const away = 'http://127.0.0.1:9'
    const off = await startPlantStore(bench, { name: 'traces, off' })
    const servers = [
      off,
      await start('1 %', '0.01'),
      await start('100 %', '1'),
      await start('away', '1', away),
    ]
    try {
      const found = await compare(bench, {
        work: traces.title,
        ...pages,
        servers,
        judge: ([none, few, all, lost]) => [
          leastMoreAtMost('CPU of 1 %', [few, none], [1.5, 1]),
          leastMoreAtMost('CPU of 100 %', [all, none], [8, 6]),
          leastMoreAtMost('CPU without a collector', [lost, none], [1, 0.5]),
        ],
      })
      const more = (servers[2]?.memoryMiB('VmHWM') ?? 0) - off.memoryMiB('VmHWM')
      return [...found, { work: 'traces', goals: [atMost('memory of 100 %', more, [64, 40], ' MiB')] }]
    } finally {
      collector.close()
    }
  },
}
