// The algorithm behind rates: what it allows in any window, what it never refuses, and what it remembers.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { test } from 'tap'
import { makeGcra, makeRateMemory, type Take } from '../../src/http/access/gcra.ts'
import { toSeconds } from '../../src/http/access/rate-limits.ts'
import { networkOf } from '../../src/http/connection/address.ts'
import { seed, tellSeed } from '../support/seed.ts'

const rates = fc.record({
  count: fc.integer({ min: 1, max: 500 }),
  perMs: fc.constantFrom(1000, 60_000, 3_600_000),
})

test('in any window no more is allowed than the burst and what the rate makes of the window', (t) => {
  tellSeed(t)
  const property = fc.property(
    rates,
    fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 400 }),
    ({ count, perMs }, pauses) => {
      let nowMs = 0
      const take = makeGcra({ count, perMs }, { now: () => nowMs })
      const allowedMs: number[] = []
      for (const pause of pauses) {
        nowMs += pause * (perMs / count / 200)
        if (take('a').allowed) allowedMs.push(nowMs)
      }
      return allowedMs.every((endMs, last) =>
        allowedMs.slice(0, last + 1).every((startMs, first) => {
          const most = count + ((endMs - startMs) * count) / perMs
          return last - first + 1 <= most + 0.01
        }),
      )
    },
  )
  fc.assert(property, { seed, numRuns: 300 })
  t.end()
})

test('who keeps to the rate is never refused, not even with the burst used up', (t) => {
  tellSeed(t)
  const property = fc.property(
    rates,
    fc.double({ min: 0, max: 1e9, noNaN: true }),
    ({ count, perMs }, startMs) => {
      let nowMs = startMs
      const take = makeGcra({ count, perMs }, { now: () => nowMs })
      for (let n = 0; n < count; n++) if (!take('a').allowed) return false
      for (let n = 1; n <= 1000; n++) {
        nowMs = startMs + (n * perMs) / count
        if (!take('a').allowed) return false
        if (take('a').allowed) return false
      }
      return true
    },
  )
  fc.assert(property, { seed, numRuns: 100 })
  t.end()
})

test('what is left is what is allowed, and the wait is exactly long enough', (t) => {
  tellSeed(t)
  const property = fc.property(
    rates,
    fc.array(fc.integer({ min: 0, max: 20 })),
    ({ count, perMs }, pauses) => {
      let nowMs = 0
      const take = makeGcra({ count, perMs }, { now: () => nowMs })
      for (const pause of pauses) {
        nowMs += pause * (perMs / count / 10)
        take('a')
      }
      let verdict = take('a')
      for (let left = verdict.remaining; left > 0; left--) {
        verdict = take('a')
        if (!verdict.allowed || verdict.remaining !== left - 1) return false
      }
      const { nextMs } = verdict
      nowMs += nextMs * 0.9
      const early = take('a').allowed
      nowMs += nextMs * 0.1
      return !early && take('a').allowed
    },
  )
  fc.assert(property, { seed, numRuns: 300 })
  t.end()
})

test('each key has its own count', (t) => {
  const take = makeGcra({ count: 1, perMs: 1000 }, { now: () => 0 })
  t.same(
    ['a', 'b', 'a', 'b', 'c'].map((key) => take(key).allowed),
    [true, true, false, false, true],
  )
  t.end()
})

test('a key whose past makes no difference any more makes room for another', (t) => {
  let nowMs = 0
  const count = makeGcra({ count: 2, perMs: 1000 }, { memory: makeRateMemory(2), now: () => nowMs })
  const take = (...keys: string[]) => keys.map((key) => count(key).remaining)
  t.same(take('a', 'b', 'a', 'b'), [1, 1, 0, 0])
  nowMs = 1000
  t.same(take('b', 'c', 'b', 'c'), [1, 1, 0, 0], 'nothing of b was forgotten for c')
  t.end()
})

test('of more keys than are remembered the one whose past matters least starts anew', (t) => {
  let nowMs = 0
  const count = makeGcra({ count: 1, perMs: 1000 }, { memory: makeRateMemory(2), now: () => nowMs })
  const take = (key: string) => {
    nowMs++
    return count(key).allowed
  }
  t.same(['a', 'b', 'a', 'b'].map(take), [true, true, false, false])
  t.same(['c', 'b', 'c', 'a'].map(take), [true, false, false, true])
  t.end()
})

test('threads that share the memory count as one', (t) => {
  const memory = makeRateMemory()
  const [one, other] = [0, 1].map(() => makeGcra({ count: 3, perMs: 1000 }, { memory, now: () => 0 }))
  const takers = [one, other, one, other, one] as Take[]
  t.same(
    takers.map((take) => take('a').allowed),
    [true, true, true, false, false],
  )
  t.end()
})

/** Takes of one key as often as possible in a thread of its own, and says how often it was allowed. */
const taker = `
import { parentPort, workerData } from 'node:worker_threads'
const { makeGcra } = await import(workerData.url)
const take = makeGcra(workerData.rate, { memory: workerData.memory, now: () => 0 })
let allowed = 0
for (let n = 0; n < workerData.rate.count; n++) if (take('a').allowed) allowed++
parentPort.postMessage(allowed)`

test('what threads take in the same moment is counted', async (t) => {
  const { href: url } = new URL('../../src/http/access/gcra.ts', import.meta.url)
  const workerData = { url, rate: { count: 30_000, perMs: 1000 }, memory: makeRateMemory(1) }
  const source = new URL(`data:text/javascript,${encodeURIComponent(taker)}`)
  const threads = [1, 2, 3].map(() => new Worker(source, { workerData }))
  const taken = await Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]))
  t.equal(
    taken.reduce((all, one) => all + one),
    workerData.rate.count,
  )
})

test('a thread that ended while it counted holds up no other for long', async (t) => {
  const memory = makeRateMemory()
  new Int32Array(memory)[0] = 1
  const take = makeGcra({ count: 2, perMs: 1000 }, { memory })
  t.same([take('a').allowed, take('a').allowed], [true, true])
})

test('one client is an IPv4 address, or an IPv6 network of 64 bits', (t) => {
  const cases: [address: string, network: string][] = [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1'],
    ['2001:0DB8:0000:0001::', '2001:db8:0:1'],
    ['2001:db8::1:0:0:0:5', '2001:db8:0:1'],
    ['2001:db8::5', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1%a:b:c:d:e:f:g:h:i', 'nowhere'],
    ['1:2:3:4:5:6:7::', '1:2:3:4'],
    ['::2:3:4:5:6:7:8', '0:2:3:4'],
    ['::', '0:0:0:0'],
    ['::1', '0:0:0:0'],
    ['unknown', 'nowhere'],
    ['', 'nowhere'],
  ]
  for (const [address, network] of cases) t.equal(networkOf(address), network, address)
  t.end()
})

test('a wait in whole seconds is one at least, and never too short', async (t) => {
  t.same([0, 999, 1000, 1001].map(toSeconds), [1, 1, 1, 2])
})
