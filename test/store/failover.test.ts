// Servers and replicas fail under load: no acknowledged plant is lost or duplicated, and all readers see one order. These
// servers write to stable storage (fsync is on).
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import tap from 'tap'
import { assertWithin, isFull } from '../support/full.ts'
import { type Service, startService } from '../support/service.ts'
import { startCluster } from './cluster.ts'
import { Inconsistent, Ledger, list, post, Reader } from './ledger.ts'

const writers = isFull ? 32 : 8
/** How many plants are added before and after each fault. */
const plantsBetween = isFull ? 500 : 50
/** No request may hang. */
const promisedMs = 5000

/** Adds plants one by one. Every second one has an id, and is retried until it is acknowledged. */
async function write(writer: number, services: Service[], ledger: Ledger, stop: AbortSignal): Promise<void> {
  for (let n = 0; !stop.aborted; n++) {
    const plant = { name: `${writer}-${n}`, tag: 'chaos', ...(n % 2 === 0 && { id: writer * 1_000_000 + n }) }
    for (let attempt = 0; ; attempt++) {
      const { url } = services[(writer + attempt) % services.length] as Service
      if ((await post(ledger, url, plant)) || plant.id === undefined) break
      await sleep(50)
    }
  }
}

/** Reads after each acknowledgement. Errors while the service is down are ignored. */
async function read(reader: Reader, service: () => Service, ledger: Ledger, stop: AbortSignal) {
  while (!stop.aborted) {
    await once(ledger, 'acknowledged')
    await reader.readOn(service().url, ledger).catch((error) => {
      if (error instanceof Inconsistent) throw error
    })
  }
}

tap.test('loses no acknowledged plant when primaries and a replica fail', { timeout: 200_000 }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const env = { DATABASE_URL: cluster.url(), LOG_LEVEL: 'error' }
  const services = [await startService(t, env), await startService(t, env)]
  const ledger = new Ledger()
  const stop = new AbortController()
  const readers = services.map(() => new Reader())
  const writing = Promise.all(
    Array.from({ length: writers }, (_, writer) => write(writer, services, ledger, stop.signal)),
  )
  const reading = Promise.all(
    readers.map((reader, index) => read(reader, () => services[index] as Service, ledger, stop.signal)),
  )

  async function failOver(fault: string, signal: NodeJS.Signals): Promise<void> {
    await ledger.more(plantsBetween)
    cluster.primary.signal(signal)
    await cluster.failOver()
    const promoted = performance.now()
    await ledger.more(1)
    assertWithin(t, performance.now() - promoted, promisedMs, fault)
    await ledger.more(plantsBetween)
    await cluster.rebuild()
  }

  async function killReplica(): Promise<void> {
    await ledger.more(plantsBetween)
    const { cut } = ledger
    services[1]?.child.kill('SIGKILL')
    await services[1]?.ended
    services[1] = await startService(t, env)
    await ledger.more(plantsBetween)
    t.ok(ledger.cut > cut, 'the replica had requests in progress')
  }

  async function chaos(): Promise<void> {
    await failOver('primary killed', 'SIGKILL')
    await failOver('primary frozen', 'SIGSTOP')
    await killReplica()
    for (let n = 0; isFull && n < 4; n++) await failOver('primary killed', 'SIGKILL')
  }
  await Promise.race([chaos(), writing, reading])
  stop.abort()
  await writing
  ledger.emit('acknowledged')
  await reading

  const { names } = await list(`${services[0]?.url}/plants`)
  t.strictSame(ledger.findFaults(names).slice(0, 10), [], 'each acknowledged plant is in the log once')
  for (const [index, reader] of readers.entries()) {
    await reader.readOn((services[index] as Service).url, ledger)
    t.ok(reader.names.join() === names.join(), 'every reader saw this order, from first to last')
  }
  assertWithin(t, ledger.longestMs, promisedMs, 'the longest request')
  const { acknowledged, refused, unknown, cut } = ledger
  t.comment(
    `${names.length} plants, ${acknowledged.size} acknowledged, ${refused.size} refused, ${unknown} unknown, ` +
      `${cut} requests cut, the longest took ${ledger.longestMs.toFixed()} ms`,
  )
})

tap.test('the ledger finds lost, duplicate and refused plants', async (t) => {
  const ledger = new Ledger()
  for (const name of ['early', 'late']) ledger.acknowledge(name)
  ledger.refused.add('denied')
  t.strictSame(ledger.findFaults(['early', 'early', 'denied']), [
    'early is in the log twice',
    'late was acknowledged, but is lost',
    'denied was refused, but is in the log',
  ])
})
