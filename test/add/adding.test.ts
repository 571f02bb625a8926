// The add operation: what is stored, what an id means, and the response.
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { fixture as realPlants } from '../cli/imports.ts'
import { engines, sqlite } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'
import { open } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { compose, exchange } from '../support/wire.ts'

for (const engine of engines) {
  test(`${engine.name}: adding`, async (t) => {
    const { url, store } = await startApp(t, await engine.createDatabase(t))
    const add = (body: unknown, headers: Record<string, string> = {}) =>
      request(`${url}/plants`, { body, headers })
    /** Returns a function that lists the plants that were added after this call. */
    const begin = async () => {
      const { position } = await store.log.head()
      return async () => ((await request(`${url}/plants`)).json() as Plant[]).slice(position)
    }

    t.test('responds with name and tag, never with the id', async (t) => {
      const list = await begin()
      const answer = await add({ id: 8, tag: 'Alnus', name: 'Alder' })
      t.equal(answer.status, 200)
      t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
      t.equal(answer.text, '{"name":"Alder","tag":"Alnus"}')
      t.same(await list(), [{ name: 'Alder', tag: 'Alnus' }])
    })

    t.test('adds two equal plants without an id twice', async (t) => {
      const list = await begin()
      const plant = { name: 'Alder', tag: '' }
      await add(plant)
      await add(plant)
      t.same(await list(), [plant, plant])
    })

    t.test('adds nothing for the same id and plant, in any notation', async (t) => {
      const list = await begin()
      await add({ name: 'Alder', tag: 'Alnus', id: 100 })
      const bodies = [
        '{"name":"Alder","tag":"Alnus","id":100}',
        '{ "id": 100, "tag": "Alnus", "name": "\\u0041lder" }',
        '{"name":"Alder","tag":"Alnus","id":1e2}',
        '{"name":"Alder","tag":"Alnus","id":100.0}',
      ]
      for (const body of bodies) {
        const answer = await add(body)
        t.equal(answer.status, 200, body)
        t.equal(answer.text, '{"name":"Alder","tag":"Alnus"}')
      }
      t.same(await list(), [{ name: 'Alder', tag: 'Alnus' }])
    })

    t.test('refuses the same id with a different name or tag, and changes nothing', async (t) => {
      const list = await begin()
      await add({ name: 'Alder', tag: 'Alnus', id: 7 })
      const others = [
        { name: 'alder', tag: 'Alnus', id: 7 },
        { name: 'Alder', tag: '', id: 7 },
        { name: 'Alder ', tag: 'Alnus', id: 7 },
      ]
      for (const other of others) assertProblem(t, await add(other), 409)
      t.same(await list(), [{ name: 'Alder', tag: 'Alnus' }])
    })

    t.test('distinguishes ids at both ends of the range from their neighbours', async (t) => {
      const list = await begin()
      const ids = [0, 1, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER]
      const plants = ids.map((id) => ({ name: `plant ${id}`, tag: '' }))
      for (const [index, id] of ids.entries()) t.equal((await add({ ...plants[index], id })).status, 200)
      t.equal((await add('{"name":"plant 0","tag":"","id":0.0}')).status, 200, 'a zero is a zero')
      for (const id of ids) assertProblem(t, await add({ name: 'another', tag: '', id }), 409)
      t.same(await list(), plants)
    })

    t.test('ignores Accept and preconditions, and accepts UTF-8 as a charset', async (t) => {
      const list = await begin()
      const headers = [
        { 'if-match': '*' },
        { 'if-none-match': '*' },
        { accept: 'text/html' },
        { accept: '*/*;q=0' },
        { 'content-type': 'application/json; charset=utf-8' },
        { 'content-type': 'Application/JSON;charset="UTF-8"' },
        { 'content-type': 'application/json; charset=utf8' },
      ]
      for (const header of headers) {
        const answer = await add({ name: 'a', tag: '' }, header as Record<string, string>)
        t.equal(answer.status, 200, JSON.stringify(header))
        t.match(answer.headers.get('content-type'), /^application\/json/)
      }
      t.equal((await list()).length, headers.length)
    })

    t.test('lists pipelined plants in the order in which they were sent', async (t) => {
      const { port, url } = await startApp(t, await engine.createDatabase(t))
      const expected = JSON.stringify(realPlants)
      const sent = realPlants.map((plant, id) => compose({ body: JSON.stringify({ ...plant, id }) }))
      const answers = await exchange(port, Buffer.concat(sent), sent.length)
      t.equal(`[${answers.map(({ text }) => text)}]`, expected)
      t.equal((await request(`${url}/plants`)).text, expected)
    })
  })
}

test('resets the connection if other bytes follow a plant that is being added', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const { append } = store.log
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  store.log.append = async (...batch) => {
    begun.resolve()
    await released.promise
    return append(...batch)
  }
  const { port, url } = await startApp(t, '', { store })
  const socket = connect(port, '127.0.0.1')
  socket.write(compose({ body: '{"name":"Alder","tag":""}' }))
  await begun.promise
  socket.on('data', () => t.fail('a 400 would say that nothing was added')).write('JUNK\r\n\r\n')
  await t.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
  released.resolve()
  await until(async () => (await request(`${url}/plants`)).text === '[{"name":"Alder","tag":""}]')
})
