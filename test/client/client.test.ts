// The client against the service: plants, pages, typed problems, tokens and aborted calls.
import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { test } from 'tap'
import { makeId, PlantStore, PlantStoreUnreachable } from '../../client/src/index.ts'
import { startApp, token } from '../support/service.ts'
import { alder, ids, refusal, rejection, setUp, soon, startFailing } from './client.ts'

const collect = (items: AsyncIterable<unknown>) => Readable.from(items).toArray()

test('sends an id of the caller, and rejects if it is already taken', async (t) => {
  const { store, front, listed } = await setUp(t)
  t.same(await store.add({ ...alder, id: 7 }), alder)
  t.same(await store.add({ ...alder, id: 7 }), alder, 'a retry of the caller adds nothing')
  front.faults.push('lost')
  const error = await refusal(t, store.add({ name: 'Alder', tag: '', id: 7 }))
  t.equal(error.kind, 'id-conflict')
  t.equal(error.mayBeAdded, false, 'no attempt added it')
  t.same(ids(front), [7, 7, 7, 7])
  t.same(await listed(), [alder])
})

test('ids are random, and safe integers of up to 53 bits', async (t) => {
  const made = Array.from({ length: 1000 }, makeId)
  t.equal(new Set(made).size, 1000)
  t.ok(made.every((id) => Number.isSafeInteger(id) && id >= 0) && made.some((id) => id > 2 ** 52))
})

test('an unreachable service is an error with its cause', async (t) => {
  const store = new PlantStore({ baseUrl: 'http://127.0.0.1:1', token, retry: { ...soon, attempts: 2 } })
  const error = await rejection(t, store.list())
  t.ok(error instanceof PlantStoreUnreachable)
  t.match(error, { name: 'PlantStoreUnreachable', cause: { name: 'TypeError' } })
  const told =
    /^The Plant Store at http:\/\/127\.0\.0\.1:1\/plants gave no usable response in 2 attempts: [^\n]+$/
  t.match(error.message, told)
})

test('a list that has not changed is not sent again', async (t) => {
  const { store } = await setUp(t, [], soon, startFailing(t))
  const { etag } = await store.list()
  t.same(await store.list({ ifNoneMatch: etag }), { plants: [], notModified: true, etag })
  await store.add(alder)
  t.match(await store.list({ ifNoneMatch: etag }), { plants: [alder], notModified: undefined })
})

/** Removes If-None-Match from requests, as a proxy with a cache does. */
const forget = (url: string, { headers, ...init }: RequestInit) => {
  const { 'if-none-match': _, ...others } = headers as Record<string, string>
  return fetch(url, { ...init, headers: others })
}

/** Removes Link from 304, which need not have it (RFC 9110, section 15.4.5). */
const shorten = async (url: string, init: RequestInit) => {
  const { status, headers: given, body } = await fetch(url, init)
  const headers = new Headers(given)
  if (status === 304) headers.delete('link')
  return new Response(body, { status, headers })
}

test('returns each new plant once when polling', async (t) => {
  const { store, front } = await setUp(t, [], soon, startFailing(t))
  const names = Array.from({ length: 7 }, (_, n) => `${n}`)
  for (const [pageSize, fetch] of [[1], [3], [1000], [3, forget], [3, shorten]] as const) {
    const client = new PlantStore({ baseUrl: front.url, token, fetch })
    let after: string | undefined
    const polled: string[] = []
    const before = (await store.list()).plants.length
    for (const name of names) {
      await store.add({ name, tag: '' })
      const plants = client.all({ pageSize, after })
      for await (const plant of plants) polled.push(plant.name)
      after = plants.after
    }
    t.same(polled.slice(before), names, `${pageSize}`)
    t.equal(polled.length, before + names.length)
    const broken = client.all({ pageSize })
    for await (const plant of broken) if (plant.name === '2') break
    const rest = await collect(client.all({ pageSize, after: broken.after }))
    t.equal(rest.length, before + names.length - 3, 'after a break in the middle of a page')
    const urls = front.seen.map(({ url }) => url)
    t.notMatch(urls.join(), /limit=100[1-9]/, 'no page has more than `pageSize` plants')
  }
  await t.rejects(store.all({ after: 'x' }).next(), TypeError)
})

test('polling ends with an error if plants that were read are no longer in the store', async (t) => {
  const before = await setUp(t, [], soon, startFailing(t))
  const restored = await setUp(t, [], soon, startFailing(t))
  for (const name of ['1', '2', '3']) await before.store.add({ name, tag: '' })
  const plants = before.store.all()
  for await (const plant of plants) if (plant.name !== '3') await restored.store.add(plant)
  for (const name of ['4', '5']) await restored.store.add({ name, tag: '' })
  await t.rejects(restored.store.all({ after: plants.after }).next(), { message: /no longer in the store/ })
})

test('rejects a refused request with a typed error and all its faults, without a retry', async (t) => {
  const { store, front } = await setUp(t)
  const error = await refusal(t, store.add({ name: '', tag: 5 as never }))
  t.equal(error.kind, 'invalid-request')
  t.equal(error.problem.status, 400)
  t.same(error.problem.errors?.map(({ pointer }) => pointer).sort(), ['/name', '/tag'])
  t.match(error.message, /^400 Invalid request: The request has 2 faults\.\n\/name: .+\n\/tag: /)
  t.equal(error.mayBeAdded, false)
  t.match(error.requestId, /^\S+$/)
  t.equal(error.headers?.get('x-request-id'), error.requestId)
  t.match((await refusal(t, store.list({ limit: -1 }))).message, /\nlimit: /)
  t.equal(front.seen.length, 2, 'a refusal is not retried')
})

test('no error contains the token', async (t) => {
  const secret = 'plant_secret'
  const { front } = await setUp(t, ['lost'])
  const store = new PlantStore({ baseUrl: front.url, token: secret, retry: { attempts: 1 } })
  const errors = [await rejection(t, store.list()), await rejection(t, store.list())]
  t.match(errors, [{ name: 'PlantStoreUnreachable' }, { problem: { status: 401 }, kind: 'about:blank' }])
  t.ok(front.seen.every(({ headers }) => headers.authorization === `Bearer ${secret}`))
  for (const bad of [`${secret}\n`, `${secret}🌿`, '', undefined as never])
    t.throws(() => new PlantStore({ baseUrl: front.url, token: bad }), TypeError)
  for (const bad of ['localhost:3000', 'ftp://a', `http://${secret}@a`, 'http://a.test/?b', undefined])
    t.throws(() => new PlantStore({ baseUrl: bad, token: secret }), TypeError)
  t.throws(() => new PlantStore({ baseUrl: front.url, token: `${secret}\n` }), { message: /^[^_]+$/ })
  errors.push(new Error(inspect(store, { showHidden: true })))
  for (const error of errors) t.notMatch(inspect(error, { depth: 9, showHidden: true }), /secret/)
})

test('a page that links to itself, as from a cache that ignores the query, ends the list with an error', async (t) => {
  const { front } = await setUp(t)
  const link = '</plants?after=%&limit=1>; rel="next"'
  const page = { status: 200, headers: { link }, body: JSON.stringify([alder]) }
  front.faults.push(page, page, { ...page, body: '[1]' })
  const store = new PlantStore({ baseUrl: front.url, token, retry: { attempts: 1 } })
  const read: unknown[] = []
  const reading = (async () => {
    for await (const plant of store.all({ pageSize: 1 })) read.push(plant)
  })()
  const cause = { message: /points to the same page/ }
  t.match(await rejection(t, reading), { name: 'PlantStoreUnreachable', cause })
  t.same(read, [alder])
  t.equal(front.seen.length, 2)
  t.match(await rejection(t, store.list()), { cause: { message: /not from the Plant Store/ } })
})

test('a redirect is not followed: a POST would become a GET', async (t) => {
  const { store, front, listed } = await setUp(t, [{ status: 301, headers: { location: '/plants' } }])
  const error = await refusal(t, store.add(alder))
  t.match(error.problem, { status: 301, type: 'about:blank', detail: /baseUrl/ })
  t.equal(front.seen.length, 1)
  t.same(await listed(), [])
})

test('a signal aborts a call before it starts and while it runs', { timeout: 60_000 }, async (t) => {
  const reason = new Error('enough')
  const { store, front } = await setUp(t)
  t.equal(await rejection(t, store.add(alder, { signal: AbortSignal.abort(reason) })), reason)
  t.equal(front.seen.length, 0)
  for (const call of [store.add.bind(store, alder), store.list.bind(store)]) {
    front.faults.push('silent')
    const controller = new AbortController()
    const rejected = rejection(t, call({ signal: controller.signal }))
    await front.next()
    controller.abort(reason)
    t.equal(await rejected, reason)
  }
  t.equal(front.seen.length, 2)
  const { signal } = new AbortController()
  await store.list({ signal })
  t.same(getEventListeners(signal, 'abort'), [], 'a signal for many calls does not collect listeners')
})

test('a signal aborts a call that waits for its next attempt', { timeout: 60_000 }, async (t) => {
  const reason = new Error('enough')
  const { front } = await setUp(t, ['lost'])
  const controller = new AbortController()
  const failing = (url: string, init: RequestInit) =>
    fetch(url, init).catch((error) => {
      // The client is in its pause once it has received the error.
      setImmediate(() => controller.abort(reason))
      throw error
    })
  const retry = { baseMs: 1e9, maxMs: 1e9, totalMs: 2e9 }
  const store = new PlantStore({ baseUrl: front.url, token, fetch: failing, retry })
  t.equal(await rejection(t, store.list({ signal: controller.signal })), reason)
  t.equal(front.seen.length, 1)
})

test('follows the Link header, and returns all plants in order', async (t) => {
  const { store, front } = await setUp(t, [], soon, startFailing(t))
  const plants = Array.from({ length: 7 }, (_, index) => ({ name: `${index} 🌿`, tag: '' }))
  for (const plant of plants) await store.add(plant)
  const first = await store.list({ limit: 3 })
  t.same(first.plants, plants.slice(0, 3))
  t.match(first.etag, /^W\/"/)
  const second = await store.list({ limit: 4, after: first.next })
  t.same(second.plants, plants.slice(3))
  t.notOk('next' in second)
  for (const pageSize of [1, 3, 7, undefined]) {
    const from = front.seen.length
    front.faults.push('half')
    t.same(await collect(store.all({ pageSize })), plants)
    t.equal(front.seen.length - from, Math.ceil(7 / (pageSize ?? 7)) + 1)
  }
  const signal = AbortSignal.abort(new Error('enough'))
  await t.rejects(store.all({ signal }).next(), { message: 'enough' })
  await t.rejects(store.all({ pageSize: 0 }).next(), RangeError)
})

test('the client uses the given base path and fetch', async (t) => {
  const { url } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  const urls: string[] = []
  const fetched = (url: string, init: RequestInit) => {
    urls.push(url)
    return fetch(url, init)
  }
  const store = new PlantStore({ baseUrl: `${url}/store/v1/`, token, fetch: fetched })
  await store.add(alder)
  t.same((await store.list()).plants, [alder])
  t.same(await collect(store.all({ pageSize: 1 })), [alder])
  const expected = ['plants', 'plants', 'plants?limit=1'].map((end) => `${url}/store/v1/${end}`)
  t.same(urls, expected)
})
