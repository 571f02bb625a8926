// Faults of the cluster of deploy/patroni: no acknowledged plant is lost or duplicated, and no list is stale. The output has
// the duration of each outage.
import { setTimeout as sleep } from 'node:timers/promises'
import tap from 'tap'
import { countRounds } from '../support/full.ts'
import { type Service, startService } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { Ledger, list, post, Reader } from './ledger.ts'
import { findServerPrograms, type Node, type PatroniCluster, startPatroni } from './patroni.ts'

tap.setTimeout(3_600_000)

const writers = 8
const plantsBetween = 100
const programs = findServerPrograms()
const skip =
  skipWithout('patroni', 'etcd') || (programs ? false : 'PostgreSQL is not installed (Debian: postgresql)')

/** The longest times without an acknowledged plant, and without a list on each of two processes. */
class Gaps {
  readonly #last = new Map<string, number>()
  readonly #longest = new Map<string, number>()

  note(what: string): void {
    const nowMs = performance.now()
    const gap = nowMs - (this.#last.get(what) ?? nowMs)
    this.#longest.set(what, Math.max(gap, this.#longest.get(what) ?? 0))
    this.#last.set(what, nowMs)
  }

  /** The longest gaps in seconds since the last call, in the order of their names. */
  take(): number[] {
    const taken = [...this.#longest].toSorted().map(([, ms]) => Math.round(ms / 100) / 10)
    this.#longest.clear()
    return taken
  }
}

/** Adds plants. One whose outcome is unknown is sent again until it is acknowledged; one that was refused is not. */
async function write(writer: number, { url }: Service, { ledger, gaps, stop }: Books): Promise<void> {
  for (let n = 0; !stop.aborted; n++) {
    const plant = { name: `${writer}-${n}`, tag: '', id: writer * 1_000_000 + n }
    let isOpen = false
    for (;;) {
      if (await post(ledger, url, plant)) {
        gaps.note('write')
        break
      }
      if (!isOpen && ledger.refused.has(plant.name)) break
      // This attempt added nothing, but an earlier one may have.
      isOpen = true
      ledger.refused.delete(plant.name)
      await sleep(50)
    }
    // Limits the load to a useful number of plants.
    await sleep(20)
  }
}

/** Lists repeatedly; each list must contain every plant that was acknowledged before its request. */
async function read(name: string, { url }: Service, books: Books): Promise<Reader> {
  const reader = new Reader()
  let checked = 0
  while (!books.stop.aborted) {
    const due = [...books.ledger.acknowledged]
    const isRead = await reader.readOn(url, books.ledger).then(
      () => true,
      (error) => {
        if (!/^Error: 503|fetch failed/.test(String(error))) books.stale.push(`${name}: ${error}`)
        return false
      },
    )
    if (isRead) {
      const names = new Set(reader.names)
      const missing = due.slice(checked).filter((plant) => !names.has(plant))
      if (missing.length > 0)
        books.stale.push(`${name}: ${missing.length} acknowledged plants are not listed`)
      checked = due.length
      books.gaps.note(name)
    }
    await sleep(20)
  }
  return reader
}

type Books = { ledger: Ledger; gaps: Gaps; stale: string[]; stop: AbortSignal }

type Fault = (cluster: PatroniCluster) => Promise<void>

/** Resolves when the other nodes report a new leader. */
async function successor(cluster: PatroniCluster, old: Node): Promise<void> {
  const others = cluster.nodes.filter((node) => node !== old)
  await until(async () => {
    const leader = (await cluster.members(others)).find(({ role }) => role === 'leader')
    return leader !== undefined && leader.name !== old.name
  })
}

const faults: Record<string, Fault> = {
  async switchover(cluster) {
    const { leader, standby } = await cluster.whole()
    await standby.ask('/switchover', { leader: leader.name, candidate: standby.name })
    await successor(cluster, leader)
  },
  async 'postmaster killed'(cluster) {
    const { leader } = await cluster.whole()
    leader.killServer()
  },
  async 'node of the primary killed'(cluster) {
    const { leader } = await cluster.whole()
    leader.kill()
    await successor(cluster, leader)
    leader.start()
  },
  async 'Patroni frozen on the primary'(cluster) {
    const { leader } = await cluster.whole()
    leader.signalPatroni('SIGSTOP')
    await successor(cluster, leader)
    // Both servers are up now, but only one of them is the primary.
    await sleep(10_000)
    leader.signalPatroni('SIGCONT')
  },
  async 'synchronous standby killed'(cluster) {
    const { standby } = await cluster.whole()
    standby.kill()
    await sleep(5000)
    standby.start()
  },
  async 'both standbys killed'(cluster) {
    const { others } = await cluster.whole()
    for (const node of others) node.kill()
    await sleep(10_000)
    for (const node of others) node.start()
  },
}

tap.test('faults of a cluster under Patroni', { skip, timeout: 3_500_000 }, async (t) => {
  const cluster = await startPatroni(t, programs as string)
  const env = { DATABASE_URL: cluster.url, LOG_LEVEL: 'warn' }
  // No client writes through the second.
  const services = [await startService(t, env), await startService(t, env)] as const
  const stop = new AbortController()
  const books: Books = { ledger: new Ledger(), gaps: new Gaps(), stale: [], stop: stop.signal }
  const writing = Array.from({ length: writers }, (_, writer) => write(writer, services[0], books))
  const reading = services.map((service, n) => read(`list ${n + 1}`, service, books))
  await books.ledger.more(plantsBetween)

  const rounds = countRounds(3, 1)
  const felt = new Map<string, number[][]>()
  for (let round = 0; round < rounds; round++)
    for (const [name, inject] of Object.entries(faults)) {
      await cluster.whole()
      await books.ledger.more(plantsBetween)
      books.gaps.take()
      await inject(cluster)
      await cluster.whole()
      await books.ledger.more(plantsBetween)
      const gaps = books.gaps.take()
      felt.set(name, [...(felt.get(name) ?? []), gaps])
      t.comment(`${name}: seconds without a list on each process, and without an addition: ${gaps}`)
    }
  stop.abort()
  await Promise.all([...writing, ...reading])

  const { names } = await list(`${services[1].url}/plants`)
  t.strictSame(books.ledger.findFaults(names).slice(0, 10), [], 'no plant is lost or duplicated')
  t.strictSame(books.stale.slice(0, 10), [], 'no list lacks an acknowledged plant')
  for (const service of services) t.notMatch(service.output().stderr, /"level":50/, 'no error in the log')
  for (const [name, gaps] of felt) {
    const table = [0, 1, 2].map((column) => gaps.map((row) => row[column] ?? 0).toSorted((a, b) => a - b))
    const [first, second, added] = table.map((all) => `${all[Math.floor(all.length / 2)]} / ${all.at(-1)}`)
    t.comment(`| ${name} | ${added} | ${first} | ${second} |`)
  }
  const { acknowledged, unknown, cut, longestMs } = books.ledger
  t.comment(
    `${acknowledged.size} acknowledged, ${unknown} unknown, ${cut} cut, the longest took ${longestMs | 0} ms`,
  )
})
