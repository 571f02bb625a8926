// The algorithm behind rates: what it allows in any window, what it never refuses, and what it remembers.
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { networkOf } from '../../src/http/access/auth-failures.ts'
import { Gcra, makeRateMemory } from '../../src/http/access/gcra.ts'
import { toSeconds } from '../../src/http/access/rate-limit.ts'
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
      const gcra = new Gcra({ count, perMs }, { now: () => nowMs })
      const allowedMs: number[] = []
      for (const pause of pauses) {
        nowMs += pause * (perMs / count / 200)
        if (gcra.take('a').allowed) allowedMs.push(nowMs)
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
      const gcra = new Gcra({ count, perMs }, { now: () => nowMs })
      for (let n = 0; n < count; n++) if (!gcra.take('a').allowed) return false
      for (let n = 1; n <= 1000; n++) {
        nowMs = startMs + (n * perMs) / count
        if (!gcra.take('a').allowed) return false
        if (gcra.take('a').allowed) return false
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
      const gcra = new Gcra({ count, perMs }, { now: () => nowMs })
      for (const pause of pauses) {
        nowMs += pause * (perMs / count / 10)
        gcra.take('a')
      }
      let verdict = gcra.take('a')
      for (let left = verdict.remaining; left > 0; left--) {
        verdict = gcra.take('a')
        if (!verdict.allowed || verdict.remaining !== left - 1) return false
      }
      const { nextMs } = verdict
      nowMs += nextMs * 0.9
      const early = gcra.take('a').allowed
      nowMs += nextMs * 0.1
      return !early && gcra.take('a').allowed
    },
  )
  fc.assert(property, { seed, numRuns: 300 })
  t.end()
})

test('each key has its own count', (t) => {
  const gcra = new Gcra({ count: 1, perMs: 1000 }, { now: () => 0 })
  t.same(
    ['a', 'b', 'a', 'b', 'c'].map((key) => gcra.take(key).allowed),
    [true, true, false, false, true],
  )
  t.end()
})

test('a key whose past makes no difference any more makes room for another', (t) => {
  let nowMs = 0
  const gcra = new Gcra({ count: 2, perMs: 1000 }, { memory: makeRateMemory(2), now: () => nowMs })
  const take = (...keys: string[]) => keys.map((key) => gcra.take(key).remaining)
  t.same(take('a', 'b', 'a', 'b'), [1, 1, 0, 0])
  nowMs = 1000
  t.same(take('b', 'c', 'b', 'c'), [1, 1, 0, 0], 'nothing of b was forgotten for c')
  t.end()
})

test('of more keys than are remembered the one whose past matters least starts anew', (t) => {
  let nowMs = 0
  const gcra = new Gcra({ count: 1, perMs: 1000 }, { memory: makeRateMemory(2), now: () => nowMs })
  const take = (key: string) => {
    nowMs++
    return gcra.take(key).allowed
  }
  t.same(['a', 'b', 'a', 'b'].map(take), [true, true, false, false])
  t.same(['c', 'b', 'c', 'a'].map(take), [true, false, false, true])
  t.end()
})

test('threads that share the memory count as one', (t) => {
  const memory = makeRateMemory()
  const [one, other] = [0, 1].map(() => new Gcra({ count: 3, perMs: 1000 }, { memory, now: () => 0 }))
  const takers = [one, other, one, other, one] as Gcra[]
  t.same(
    takers.map((gcra) => gcra.take('a').allowed),
    [true, true, true, false, false],
  )
  t.end()
})

/** Does `act` in the middle of the next change of the memory, or of a later one, as another thread may. */
function interrupt(t: Test, act: () => void, changes = 1): void {
  let left = changes
  const { compareExchange, store } = Atomics
  const restore = () => Object.assign(Atomics, { compareExchange, store })
  t.teardown(restore)
  const first =
    <Change extends unknown[], Result>(change: (...args: Change) => Result) =>
    (...args: Change) => {
      if (--left === 0) {
        restore()
        act()
      }
      return change(...args)
    }
  Object.assign(Atomics, { compareExchange: first(compareExchange), store: first(store) })
}

test('what another thread takes for a key that both of them bring in is counted', (t) => {
  let nowMs = 0
  const memory = makeRateMemory(1)
  const [one, other] = [0, 1].map(() => new Gcra({ count: 3, perMs: 1000 }, { memory, now: () => nowMs }))
  const take = (gcra: Gcra | undefined, key: string) => gcra?.take(key).remaining
  take(one, 'former')
  nowMs = 1
  // In the middle of each change by which a key takes over a cell that is still of use.
  for (const [key, changes] of [
    ['a', 1],
    ['b', 2],
  ] as const) {
    interrupt(t, () => t.equal(take(other, key), 2), changes)
    t.equal(take(one, key), 1, `the other one counted before change ${changes}`)
  }
  t.end()
})

test('what another thread takes in the same moment is counted', (t) => {
  const memory = makeRateMemory()
  const [one, other] = [0, 1].map(() => new Gcra({ count: 3, perMs: 1000 }, { memory, now: () => 0 }))
  const take = (gcra: Gcra | undefined) => gcra?.take('a').remaining
  t.equal(take(one), 2)
  interrupt(t, () => t.equal(take(other), 1))
  t.equal(take(one), 0)
  t.equal(one?.take('a').allowed, false)
  t.end()
})

test('what is taken for a key whose cell another thread gives away in the same moment is counted', (t) => {
  const memory = makeRateMemory(1)
  const [one, other] = [0, 1].map(() => new Gcra({ count: 3, perMs: 1000 }, { memory, now: () => 0 }))
  one?.take('a')
  other?.take('b')
  other?.take('a')
  // The other one brings in a key whose count is the same as that of the one before.
  interrupt(t, () => other?.take('b'))
  t.equal(one?.take('a').remaining, 2, 'begun anew, as the least of what is remembered')
  t.equal(one?.take('a').remaining, 1, 'and counted')
  t.end()
})

for (const key of ['a', 'b'])
  test(`two threads begin to count ${key === 'a' ? 'one key' : 'two keys'} in the same moment`, (t) => {
    const memory = makeRateMemory(2)
    const [one, other] = [0, 1].map(() => new Gcra({ count: 3, perMs: 1000 }, { memory, now: () => 0 }))
    interrupt(t, () => t.equal(other?.take(key).remaining, 2))
    t.equal(one?.take('a').remaining, key === 'a' ? 1 : 2)
    t.equal(other?.take(key).remaining, key === 'a' ? 0 : 1)
    t.end()
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
