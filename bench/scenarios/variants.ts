// The service beside itself under other circumstances: another setting, a slow disk, a large store.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../bench.ts'
import { additions, addPlant, getList, pages, startPlantStore } from '../contenders.ts'
import { compare, type Results, type Scenario } from '../findings.ts'
import { atLeast, atMost, leastAtMost, type Reach, rateAtLeast } from '../goals.ts'
import { startLoad } from '../load/load.ts'
import { countListeners } from '../proc.ts'
import { requireProgram, slowSync } from '../processes.ts'

/** What the access log costs. */
export const accessLog: Scenario = {
  name: 'access-log',
  title: 'GET ?limit=100, 32 connections, access log',
  async run(bench) {
    const off = await startPlantStore(bench, { name: 'Plant Store, log off', env: { LOG_LEVEL: 'warn' } })
    const on = await startPlantStore(bench, { name: 'Plant Store, log on' })
    const findings = await compare(bench, {
      work: accessLog.title,
      ...pages,
      servers: [off, on],
      judge: ([base, logged]) => [leastAtMost('CPU per request / log off', [logged, base], [1.08, 1.04])],
    })
    // A log that leaves lines out would be cheap.
    await on.stop()
    const lines = Number.parseInt(execFileSync('wc', ['-l', on.logFile], { encoding: 'utf8' }), 10)
    const goals = [atLeast('lines per request', lines / on.answers, [1, 1])]
    return [...findings, { work: accessLog.title, goals }]
  },
}

/** One HTTP thread beside two, on all processors, with the load beside them. */
export const threads: Scenario = {
  name: 'threads',
  title: 'one thread beside two',
  async run(bench) {
    const load = startLoad(bench.pins.all)
    const start = (name: string, count: string) =>
      startPlantStore(bench, { name, env: { THREADS: count }, cpus: bench.pins.all })
    const one = await start('Plant Store, 1 thread', '1')
    const two = await start('Plant Store, 2 threads', '2')
    if (countListeners(new URL(two.url).port) === 1)
      throw new Error('with THREADS=2 only one socket listens: it is ignored here')
    // The load keeps a processor busy by itself.
    const unjudged =
      availableParallelism() > 2 ? {} : { unjudged: 'no processor is free for a second thread' }
    const judge = (reach: Reach) => {
      return ([alone, both]: Results) => {
        return [{ ...rateAtLeast('requests/s / one thread', [both, alone], reach), ...unjudged }]
      }
    }
    const [contest, how] = [{ servers: [one, two], load, connections: 64 }, '64 connections, all processors']
    const times = await compare(
      bench,
      { work: `GET ?limit=100, ${how}`, request: getList, ...contest, judge: judge([1.4, 1.8]) },
      { work: `POST, ${how}`, request: addPlant, ...contest, judge: judge([1.05, 1.3]) },
    )
    await load.end()
    // After the same load: a thread that has done nothing yet has most of its memory still to come.
    const more = two.memoryMiB() - one.memoryMiB()
    const goals = [atMost('memory of the second', more, [90, 60], ' MiB')]
    return [...times, { work: 'two threads', goals }]
  },
}

const preloaded = pathToFileURL(join(root, 'bench/peers/no-delay.ts')).href

/** A few clients that add a plant now and then: what it costs that a batch waits for more requests. */
export const lightLoad: Scenario = {
  name: 'light-load',
  title: 'POST, 4 clients × 50/s, an fsync takes 4 ms',
  unable: requireProgram('strace'),
  async run(bench) {
    const under = slowSync(4)
    const alone = await startPlantStore(bench, {
      name: 'Plant Store, no wait',
      under,
      env: { NODE_OPTIONS: `--import=${preloaded}` },
    })
    if (!readFileSync(alone.logFile, 'utf8').includes('no delay'))
      throw new Error(
        'src/plants/add/batch-delay.ts was not loaded: bench/peers/no-delay.ts replaces nothing',
      )
    return compare(bench, {
      work: lightLoad.title,
      request: addPlant,
      connections: 4,
      perSecond: 50,
      servers: [alone, await startPlantStore(bench, { under })],
      judge: ([base, ours]) => [leastAtMost('CPU per request / no wait', [ours, base], [1.2, 1.05])],
    })
  },
}

/** The two operations in a very large store, beside a small one: the cost must not grow with the store. */
export const largeStore: Scenario = {
  name: 'large-store',
  title: 'a large store beside a small one',
  async run(bench) {
    const plants = bench.options.largePlants
    const many = `${plants.toLocaleString('en')} plants`
    const small = await startPlantStore(bench, { name: 'Plant Store, 1,000 plants' })
    const servers = [small, await startPlantStore(bench, { name: `Plant Store, ${many}`, plants })]
    const judge = ([few, all]: Results) => [leastAtMost('CPU / at 1,000', [all, few], [1.15, 1.05])]
    return compare(
      bench,
      { work: `GET ?limit=100 at ${many}`, ...pages, servers, judge },
      { work: `POST at ${many}`, ...additions, servers, judge },
    )
  },
}
