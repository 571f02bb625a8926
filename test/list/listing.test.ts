// The list operation: order, limit, pages, conditional requests, HEAD.

import { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { cursorOf } from '../../src/plants/names.ts'
import { engines } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { type Running, request, startApp } from '../support/service.ts'
import { add, openFailing, openStore, type StoreFault } from '../support/stores.ts'
import { compose, type Parts, send } from '../support/wire.ts'

const plants = Array.from({ length: 25 }, (_, n) => ({ name: `plant ${n}`, tag: `tag ${n}` }))

async function startWithPlants(t: Test, databaseUrl: string): Promise<Running> {
  const running = await startApp(t, databaseUrl)
  await running.store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
  return running
}

/** The target of the Link header, if any. */
function nextOf(headers: Headers): string | undefined {
  const link = headers.get('link')
  return link === null ? undefined : /^<([^>]+)>; rel="next"$/.exec(link)?.[1]
}

for (const engine of engines) {
  test(`${engine.name}: listing`, async (t) => {
    /** Tests only read its plants. */
    const { url, store } = await startWithPlants(t, await engine.createDatabase(t))

    t.test('lists all plants without a limit, in the order of their addition', async (t) => {
      const answer = await request(`${url}/plants`)
      t.equal(answer.text, JSON.stringify(plants))
      t.equal(answer.headers.get('link'), null)
      t.equal(answer.headers.get('cache-control'), 'private, no-cache')
    })

    t.test('limit shortens the list, and a Link header leads to the rest', async (t) => {
      const limits: [text: string, count: number, more: boolean][] = [
        ['0', 0, false],
        ['1', 1, true],
        ['024', 24, true],
        ['25', 25, false],
        ['26', 25, false],
        ['9007199254740991', 25, false],
      ]
      for (const [limit, count, more] of limits) {
        const answer = await request(`${url}/plants?limit=${limit}`)
        t.equal(answer.status, 200, `limit=${limit}`)
        t.same(answer.json(), plants.slice(0, count))
        t.equal(nextOf(answer.headers) !== undefined, more)
      }
    })

    t.test('the links lead to every plant once, in order, while others are added', async (t) => {
      const { url } = await startWithPlants(t, await engine.createDatabase(t))
      const pages: Plant[][] = []
      for (let next: string | undefined = '/plants?limit=7'; next; ) {
        const answer = await request(new URL(next, url).href)
        pages.push(answer.json() as Plant[])
        next = nextOf(answer.headers)
        if (pages.length === 1) await request(`${url}/plants`, { body: { name: 'late', tag: '' } })
      }
      const lengths = pages.map((page) => page.length)
      t.same(lengths, [7, 7, 7, 5])
      t.same(pages.flat(), [...plants, { name: 'late', tag: '' }])
    })

    t.test('a cursor works without a limit, or with another one', async (t) => {
      const next = new URL(nextOf((await request(`${url}/plants?limit=20`)).headers) as string, url)
      next.searchParams.delete('limit')
      t.same((await request(next.href)).json(), plants.slice(20))
      next.searchParams.set('limit', '2')
      t.same((await request(next.href)).json(), plants.slice(20, 22))
      next.searchParams.set('limit', '0')
      const none = await request(next.href)
      t.equal(none.text, '[]')
      t.equal(none.headers.get('link'), null)
    })

    t.test('the ETag changes with the content and with the store', async (t) => {
      const one = await startWithPlants(t, await engine.createDatabase(t))
      const etagOf = async (url: string) => (await request(url)).headers.get('etag')
      const all = await etagOf(`${one.url}/plants`)
      const first = await etagOf(`${one.url}/plants?limit=5`)
      t.match(all, /^W\/"[\x21\x23-\x7e]+"$/, 'the ETag is weak, since it is the same for all codings')
      t.equal(await etagOf(`${one.url}/plants`), all)
      t.not(first, all)
      t.not(await etagOf(`${one.url}/plants?limit=6`), first)
      t.not(await etagOf(`${url}/plants`), all)
      await request(`${one.url}/plants`, { body: { name: 'another', tag: '' } })
      t.not(await etagOf(`${one.url}/plants`), all)
      t.equal(await etagOf(`${one.url}/plants?limit=5`), first, 'the first plants are still the same')
    })

    t.test('returns 304 if If-None-Match contains the ETag of the list', async (t) => {
      const full = await request(`${url}/plants?limit=5`)
      const weak = full.headers.get('etag') as string
      const etag = weak.slice(2)
      const conditions: [text: string, status: number][] = [
        [weak, 304],
        [etag, 304],
        [`"other", ${etag}`, 304],
        [`"a,b" , W/"c",W/${etag} , "d"`, 304],
        ['*', 304],
        ['"other"', 200],
        ['W/"other", "another"', 200],
        [`,, ${etag}\t,`, 304],
        [etag.slice(1, -1), 200],
        ['"*"', 200],
        ['', 200],
        [',', 200],
        [`w/${etag}`, 200],
        [`W/ ${etag}`, 200],
        [`W/W/${etag}`, 200],
        [`${etag} ${etag}`, 200],
        [`${etag}${etag}`, 200],
        [`${etag}, other`, 200],
        [`other, ${etag}`, 200],
        [`${etag}, *`, 200],
        [`*, ${etag}`, 200],
        [`"other, ${etag}`, 200],
        [`${etag}; ${etag}`, 200],
        [`${etag}, "with space "`, 200],
        // Refused quickly; a careless pattern would try every split of the white space.
        [`${etag}${', \t '.repeat(3500)}x`, 200],
        [`${etag},${' '.repeat(15_000)}x`, 200],
      ]
      for (const [condition, status] of conditions) {
        const answer = await request(`${url}/plants?limit=5`, { headers: { 'if-none-match': condition } })
        t.equal(answer.status, status, condition)
        for (const name of ['etag', 'link', 'cache-control', 'x-content-type-options'])
          t.equal(answer.headers.get(name), full.headers.get(name), name)
        t.equal(answer.text, status === 304 ? '' : full.text)
      }
    })

    t.test('the ETag depends on the first plant, and made-up cursors are refused', async (t) => {
      const next = nextOf((await request(`${url}/plants?limit=5`)).headers) as string
      const cursor = new URL(next, url).searchParams.get('after') as string
      const tags = ['?limit=10', `?after=${cursor}&limit=5`, `?after=${cursor}&limit=6`].map(async (query) =>
        (await request(`${url}/plants${query}`)).headers.get('etag'),
      )
      t.equal(new Set(await Promise.all(tags)).size, 3)
      const { position, mark } = await store.log.head()
      t.equal((await request(`${url}/plants?after=${cursorOf({ last: position, mark })}`)).text, '[]')
      const madeUp = [
        cursorOf({ last: position + 1, mark }),
        cursorOf({ last: -5, mark }),
        cursor.slice(0, -1),
        cursor.slice(0, cursor.indexOf('-') + 1),
        cursor.slice(0, cursor.indexOf('-')),
        `0${cursor}`,
        `${cursor}A`,
        '-',
      ]
      for (const after of madeUp) {
        const problem = assertProblem(t, await request(`${url}/plants?after=${after}`), 400)
        t.equal(problem.errors?.[0]?.parameter, 'after', after)
      }
    })

    t.test('reads no plants for a 304 or HEAD, and errors have no ETag', async (t) => {
      const store = await openStore(await engine.createDatabase(t))
      const log = { ...store.log, read: () => Promise.reject(new Error('plants were read')) }
      const { url } = await startApp(t, '', { store: { ...store, log } })
      await request(`${url}/plants`, { body: { name: 'a', tag: '' } })
      const etag = (await request(`${url}/plants`, { method: 'HEAD' })).headers.get('etag') as string
      const failed = await request(`${url}/plants`)
      assertProblem(t, failed, 500)
      t.equal(failed.headers.get('etag'), null)
      t.equal((await request(`${url}/plants`, { headers: { 'if-none-match': etag } })).status, 304)
    })
  })
}

const namesOfHead = ['etag', 'link', 'cache-control', 'content-type', 'retry-after', 'www-authenticate']

const requests: [status: number, parts: Parts, fault?: StoreFault][] = [
  [200, {}],
  [200, { target: '/plants?limit=1' }],
  [200, { target: '/plants?limit=0' }],
  [304, { target: '/plants?limit=1', headers: { 'If-None-Match': '*' } }],
  [400, { target: '/plants?limit=x' }],
  [401, { headers: { Authorization: undefined } }],
  [414, { target: `/plants?limit=${'1'.repeat(9000)}` }],
  [500, {}, 'broken'],
  [503, {}, 'unread'],
]

// RFC 9110, section 9.3.2
test('HEAD has the status and the headers of GET', async (t) => {
  const { store, faults } = await openFailing(t)
  await add(store, 'a', 'b')
  const { port } = await startApp(t, '', { store })
  for (const [status, parts, fault] of requests) {
    if (fault) faults.push(fault, fault)
    const get = await send(port, compose({ ...parts, method: 'GET' }))
    const head = await send(port, compose({ ...parts, method: 'HEAD' }))
    t.same([get.status, head.status], [status, status])
    t.equal(head.text, '')
    if (status === 304) t.equal(head.headers.get('content-length'), null)
    for (const name of namesOfHead)
      t.equal(head.headers.get(name), get.headers.get(name), `${name} of ${status}`)
  }
})
