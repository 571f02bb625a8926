// An outage of the database is logged when it begins and when it is over; failed requests at most every ten seconds.
import { test } from 'tap'
import { makeOutage } from '../../src/outage.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { collectLines, openFailing } from '../support/stores.ts'

test('requests that the store fails or refuses are logged at most every ten seconds', async (t) => {
  const { store, faults } = await openFailing(t)
  const { logger, lines } = collectLines()
  const { url } = await startApp(t, '', { store, logger })
  lines.splice(0)
  const add = (id: string) =>
    request(`${url}/plants`, { body: { name: 'a', tag: '' }, headers: { 'x-request-id': id } })
  faults.push('unread', 'nothing-added', 'unknown', 'overloaded', 'overloaded')
  t.equal((await request(`${url}/plants`, { headers: { 'x-request-id': 'one' } })).status, 503)
  for (const id of ['two', 'three', 'four', 'five']) t.equal((await add(id)).status, 503)
  t.equal((await request(`${url}/plants`, { headers: { authorization: '' } })).status, 401)
  t.equal((await request(`${url}/plants?limit=x`)).status, 400)
  t.match(lines, [
    {
      level: 40,
      msg: 'requests failed because the store was unavailable',
      requestId: 'one',
      outcome: 'unread',
      failures: 1,
      err: { message: /as the test wants it/, stack: /\n/ },
    },
    {
      level: 40,
      msg: 'requests were refused because too many are in progress',
      requestId: 'four',
      failures: 1,
    },
  ])
  t.equal(lines.length, 2)
})

test('an outage has a line when it begins and one when it is over', async (t) => {
  const { logger, lines } = collectLines()
  let nowMs = 0
  const outage = makeOutage(logger, { gone: 'gone', back: 'back' }, () => nowMs)
  const told = () =>
    lines.splice(0).map(({ msg, failures, seconds, reason }) => [msg, failures, seconds, reason])
  outage.reportRecovery()
  for (; nowMs < 5000; nowMs += 100) outage.reportFailure(new Error('no'), {})
  outage.reportRecovery()
  outage.reportRecovery()
  t.strictSame(told(), [
    ['gone', 1, undefined, undefined],
    ['back', 50, 5, undefined],
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
})

test('failures without an end are logged every ten seconds', async (t) => {
  const { logger, lines } = collectLines()
  let nowMs = 0
  const outage = makeOutage(logger, { gone: 'gone' }, () => nowMs)
  for (; nowMs < 25_000; nowMs += 100) outage.reportFailure(new Error('no'), {})
  t.match(lines, [
    { msg: 'gone', failures: 1, err: { message: 'no' } },
    { msg: 'gone', failures: 100, reason: 'no' },
    { msg: 'gone', failures: 100, reason: 'no' },
  ])
  t.equal(lines.length, 3)
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
  t.match(await find(({ msg }) => msg === 'plants can be added to the database again'), { failures: 50 })
  t.match(
    lines.map(({ level }) => level),
    [40, 30],
    'the fault of the file, once, and that it is over',
  )
})
