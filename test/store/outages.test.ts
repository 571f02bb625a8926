// While the database is away the log says so when it goes, every ten seconds, and when it is back: not for each request.
import { test } from 'tap'
import { Outage } from '../../src/outage.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { collectLines, openFailing } from '../support/stores.ts'

test('a failing store is logged once, with a request and the cause, and again when it is back', async (t) => {
  const { store, faults } = await openFailing(t)
  const { logger, lines } = collectLines()
  const { url } = await startApp(t, '', { store, logger })
  lines.splice(0)
  const list = (id: string) => request(`${url}/plants`, { headers: { 'x-request-id': id } })
  const add = (id: string) =>
    request(`${url}/plants`, { body: { name: 'a', tag: '' }, headers: { 'x-request-id': id } })
  faults.push('unread', 'unread', 'nothing-added', 'unknown', 'overloaded')
  for (const id of ['one', 'two']) t.equal((await list(id)).status, 503)
  for (const id of ['three', 'four', 'five']) t.equal((await add(id)).status, 503)
  t.match(lines, [
    {
      level: 40,
      msg: 'the store could not be used',
      requestId: 'one',
      outcome: 'unread',
      failures: 1,
      err: { message: /as the test wants it/, stack: /\n/ },
    },
  ])
  t.equal((await request(`${url}/plants`, { headers: { authorization: '' } })).status, 401)
  t.equal((await request(`${url}/plants`, { body: {} })).status, 400)
  t.equal((await request(`${url}/plants`)).status, 200)
  t.equal(lines.length, 1, 'that it can be read does not mean that it can be written')
  t.equal((await add('six')).status, 200)
  t.match(lines[1], { level: 30, msg: 'the store can be used again', failures: 4 })
  faults.push('unread')
  t.equal((await list('seven')).status, 503)
  t.equal((await list('eight')).status, 200)
  t.equal(lines.length, 2, 'one that comes and goes does not fill the log')
})

test('a request that waited through an outage, and fails after it, does not begin another', async (t) => {
  const { store, faults } = await openFailing(t)
  const { logger, lines } = collectLines()
  const late = Promise.withResolvers<never>()
  const came = Promise.withResolvers<void>()
  const append = () => {
    came.resolve()
    return late.promise
  }
  const { url } = await startApp(t, '', { store: { ...store, log: { ...store.log, append } }, logger })
  lines.splice(0)
  const waiting = request(`${url}/plants`, { body: { name: 'a', tag: '' } })
  await came.promise
  faults.push('unread')
  for (const status of [503, 200]) t.equal((await request(`${url}/plants`)).status, status)
  late.reject(new StoreUnavailable('nothing-added', 'too late'))
  t.equal((await waiting).status, 503)
  // During an outage this would be a part of it.
  faults.push('overloaded')
  t.equal((await request(`${url}/plants`)).status, 503)
  t.same(
    lines.map(({ msg }) => msg),
    [
      'the store could not be used',
      'the store can be used again',
      'requests were refused: too many are in progress',
    ],
  )
})

test('a request that times out is logged with what the database did last', async (t) => {
  const { store } = await openFailing(t)
  const { logger, lines } = collectLines()
  const never = new Promise<never>(() => {})
  const away = {
    ...store,
    fault: () => 'pg1:5432/plants: no answer',
    log: { ...store.log, head: () => never },
  }
  const { url } = await startApp(t, '', { store: away, logger })
  lines.splice(0)
  t.equal((await request(`${url}/plants`)).status, 503)
  t.match(lines, [{ msg: 'the store could not be used', database: 'pg1:5432/plants: no answer' }])
})

test('overload is logged once while the store works', async (t) => {
  const { store, faults } = await openFailing(t)
  const { logger, lines } = collectLines()
  const { url } = await startApp(t, '', { store, logger })
  lines.splice(0)
  faults.push('overloaded', 'overloaded')
  for (let n = 0; n < 2; n++)
    t.equal((await request(`${url}/plants`, { body: { name: 'a', tag: '' } })).status, 503)
  t.match(lines, [{ level: 40, msg: 'requests were refused: too many are in progress', failures: 1 }])
  t.equal(lines.length, 1)
})

test('an outage has a line when it begins, one every ten seconds, and one when it is over', async (t) => {
  const { logger, lines } = collectLines()
  let nowMs = 0
  const outage = new Outage(logger, { gone: 'gone', still: 'still', back: 'back' }, () => nowMs)
  const told = () =>
    lines.splice(0).map(({ msg, failures, seconds, reason }) => [msg, failures, seconds, reason])
  outage.reportRecovery()
  for (; nowMs < 25_000; nowMs += 100) outage.reportFailure(new Error('no'), {})
  outage.reportRecovery()
  outage.reportRecovery()
  t.strictSame(told(), [
    ['gone', 1, undefined, undefined],
    ['still', 100, undefined, 'no'],
    ['still', 100, undefined, 'no'],
    ['back', 250, 25, undefined],
  ])
  outage.reportFailure(new Error('no'), {})
  outage.reportRecovery()
  t.strictSame(told(), [], 'again within ten seconds, and over')
  nowMs += 4000
  outage.reportFailure(new Error('no'), {})
  nowMs += 6000
  // What was not told before counts.
  outage.reportFailure(new Error('no'), {})
  outage.reportRecovery()
  t.strictSame(told(), [
    ['gone', 3, undefined, undefined],
    ['back', 2, 6, undefined],
  ])
  const quiet = new Outage(logger, { gone: 'gone', back: 'back' }, () => nowMs)
  for (let n = 0; n < 3; n++, nowMs += 10_000) quiet.reportFailure(new Error('no'), {})
  t.strictSame(told(), [['gone', 1, undefined, undefined]])
})

test('SQLite that takes no plants has a line when it begins and one when it is over', async (t) => {
  const { logger, lines, find } = collectLines()
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), { logger })
  lines.splice(0)
  const add = () => request(`${url}/plants`, { body: { name: 'a', tag: '' } })
  await store.sql.execute(
    "CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'no room'); END",
  )
  for (let n = 0; n < 50; n++) {
    const { status, text } = await add()
    t.equal(status, 503)
    t.notMatch(text, /no room|SQL/, 'nothing of the inside is said')
  }
  await store.sql.execute('DROP TRIGGER full')
  t.equal((await add()).status, 200)
  t.equal((await request(`${url}/plants`)).text, '[{"name":"a","tag":""}]')
  t.match(await find(({ msg }) => msg === 'the database takes plants again'), { failures: 50 })
  t.match(
    lines.map(({ level }) => level),
    [40, 30],
    'the fault of the file, once, and that it is over',
  )
})
