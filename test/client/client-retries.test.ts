// The retries of the client: which requests it sends again, when, and for how long.
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { PlantStore, PlantStoreError, type PlantStoreUnreachable } from '../../client/src/index.ts'
import { token } from '../support/service.ts'
import type { StoreFault } from '../support/stores.ts'
import { alder, ids, refusal, rejection, setUp, soon } from './client.ts'
import type { Canned, Fault } from './front.ts'

const slowDown: Canned = {
  status: 429,
  headers: { 'retry-after': '0' },
  body: '{"type":"/problems/rate-limited"}',
}
const passing: [title: string, fault: Fault][] = [
  ['a request that is lost', 'lost'],
  ['a response that is lost after the plant was added', 'unanswered'],
  ['a truncated response', 'half'],
  ['a 408', { status: 408 }],
  ['a 429', slowDown],
  ['a 503 that is not from the service', { status: 503, body: '<h1>Sorry</h1>' }],
  ['a 500', { status: 500, body: '{"type":"about:blank"}' }],
  ['a 504 of a proxy', { status: 504 }],
  ['a success that is not JSON', { status: 200, body: '<h1>Log in</h1>' }],
  ['a success without a plant or a list', { status: 200, body: 'null' }],
  ['a problem with unknown faults', { status: 503, body: '{"type":"about:blank","errors":[null]}' }],
]

for (const [title, fault] of passing)
  test(`adds a plant once and reads lists after ${title}`, async (t) => {
    const { store, front, listed } = await setUp(t, [fault, fault])
    t.same(await store.add(alder), alder)
    t.same(await listed(), [alder])
    const sent = ids(front)
    t.equal(sent.length, 3)
    t.equal(new Set(sent).size, 1, 'each attempt has the same id')
    front.faults.push(fault)
    t.same((await store.list()).plants.at(-1), alder)
    t.equal(front.faults.length, 0)
  })

test('adds a plant once after 503 nothing-added and outcome-unknown, and retries unread', async (t) => {
  for (const outcome of ['nothing-added', 'unknown'] as const) {
    const { store, front, listed, storeFaults } = await setUp(t)
    storeFaults.push(outcome)
    t.same(await store.add(alder), alder)
    t.same(await listed(), [alder], outcome)
    t.equal(front.seen.length, 2)
  }
  const { store, storeFaults } = await setUp(t)
  storeFaults.push('unread')
  t.same((await store.list()).plants.at(-1), alder)
  t.same(storeFaults, [])
})

test('waits for Retry-After, in seconds or as a date', async (t) => {
  for (const value of ['3600', new Date(Date.now() + 3_600_000).toUTCString()]) {
    const fault = { status: 503, headers: { 'retry-after': value } }
    const onRetry = () => t.fail(`it must not wait for ${value}`)
    const { store, front } = await setUp(t, [fault], { ...soon, totalMs: 60_000, onRetry })
    t.equal((await refusal(t, store.add(alder))).problem.status, 503, `${value} exceeds totalMs`)
    t.equal(front.seen.length, 1)
  }
  const { store, front } = await setUp(t, [{ status: 503, headers: { 'retry-after': '1' } }])
  await store.add(alder)
  t.equal(front.seen.length, 2)
})

test('replaces a random id that is already taken', async (t) => {
  const body = JSON.stringify({ type: '/problems/id-conflict', title: '', status: 409, detail: '' })
  const { store, front, listed } = await setUp(t, ['lost', { status: 409, body }])
  await store.add(alder)
  const [first, second, third] = ids(front)
  t.equal(first, second)
  t.not(second, third)
  t.same(await listed(), [alder])
})

test('a call may have its own retry options, and reports each retry', async (t) => {
  const { store, front } = await setUp(t, ['lost', slowDown, 'lost'])
  t.intercept(Math, 'random', { value: () => 1 })
  const told: unknown[] = []
  const onRetry = (failure: Error, attempt: number, pauseMs: number) =>
    told.push([failure.name, attempt, pauseMs])
  t.same(await store.add(alder, { retry: { attempts: 4, maxMs: 3, onRetry } }), alder)
  t.same(told, [
    ['PlantStoreUnreachable', 1, 1],
    ['PlantStoreError', 2, 2],
    ['PlantStoreUnreachable', 3, 3],
  ])
  front.faults.push('lost')
  await rejection(t, store.list({ retry: { attempts: 1, onRetry } }))
  t.equal(told.length, 3)
  t.equal(front.seen.length, 5)
  front.faults.push({ status: 304 })
  t.match(await rejection(t, store.list()), { problem: { status: 304 } }, 'a 304 that was not asked for')
})

test('the number of attempts is limited, and the error states whether the plant may have been added', async (t) => {
  const cases: [faults: Fault[], storeFaults: StoreFault[], kind: string | undefined, mayBeAdded: boolean][] =
    [
      [['lost', 'unanswered'], [], undefined, true],
      [['lost'], ['nothing-added'], 'nothing-added', true],
      [[], ['nothing-added', 'unknown'], 'outcome-unknown', true],
      [[], ['nothing-added', 'nothing-added'], 'nothing-added', false],
      [[], ['unread', 'overloaded'], 'overloaded', false],
      [[slowDown, slowDown], [], 'rate-limited', false],
      [[{ status: 502 }, slowDown], [], 'rate-limited', true],
    ]
  for (const [faults, outcomes, kind, mayBeAdded] of cases) {
    const { store, front, storeFaults } = await setUp(t, faults, { ...soon, attempts: 2 })
    storeFaults.push(...outcomes)
    const error = (await rejection(t, store.add(alder))) as PlantStoreError | PlantStoreUnreachable
    t.equal(error instanceof PlantStoreError ? error.kind : undefined, kind)
    t.equal(error.mayBeAdded, mayBeAdded, `${kind} after ${faults} ${outcomes}`)
    t.equal(front.seen.length, 2)
  }
})

test('retries after a silent attempt', { timeout: 60_000 }, async (t) => {
  const { store, front, listed } = await setUp(t, ['silent'], { ...soon, silenceMs: 500 })
  t.same(await store.add(alder), alder)
  t.same(await listed(), [alder])
  front.faults.push('silent', 'stalled')
  t.same((await store.list()).plants.at(-1), alder)
  t.equal(front.seen.length, 5)
  front.faults.push('stalled', 'stalled')
  const retry = { ...soon, attempts: 2, silenceMs: 500 }
  const last = new PlantStore({ baseUrl: front.url, token, retry }).list()
  t.match(await rejection(t, last), { name: 'PlantStoreUnreachable', cause: { name: 'TimeoutError' } })
})

test('a list that keeps arriving may take longer than totalMs', { timeout: 60_000 }, async (t) => {
  const body = async function* () {
    for (const part of ['[', ' ', ' ', ' ', ' ', ']']) {
      await sleep(150)
      yield Buffer.from(part)
    }
  }
  const fetch = async () => new Response(ReadableStream.from(body()))
  const retry = { attempts: 1, totalMs: 400, silenceMs: 1000 }
  const store = new PlantStore({ baseUrl: 'http://plants.test', token, fetch, retry })
  t.same((await store.list()).plants, [])
})

test('a call ends after totalMs, even if a list was cut off before', { timeout: 60_000 }, async (t) => {
  const late = { name: 'PlantStoreUnreachable', mayBeAdded: true, cause: { name: 'TimeoutError' } }
  const { store, front } = await setUp(t, ['silent'], { ...soon, totalMs: 200 })
  t.match(await rejection(t, store.add(alder)), late)
  const patient = new PlantStore({ baseUrl: front.url, token, retry: { totalMs: Number.POSITIVE_INFINITY } })
  await patient.add(alder)
  front.faults.push('half', 'silent')
  const list = new PlantStore({ baseUrl: front.url, token, retry: { ...soon, totalMs: 1000 } }).list()
  t.match(await rejection(t, list), late)
  t.equal(front.seen.length, 4)
})
