// An outage of the database is logged when it begins and when it ends; failed requests at most every ten seconds.
import { test } from 'tap'
import { makeOutage } from '../../src/outage.ts'
import { request, startApp } from '../support/service.ts'
import { collectLines, openFailing } from '../support/stores.ts'

test('logs failed and refused requests at most every ten seconds', async (t) => {
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
      err: { message: /made by the test/, stack: /\n/ },
    },
    { level: 40, msg: 'requests were refused because too many were in progress', requestId: 'four' },
  ])
  t.equal(lines.length, 2)
})

test('logs an outage when it begins and when it ends', async (t) => {
  const { logger, lines } = collectLines()
  let nowMs = 0
  const outage = makeOutage(logger, { failed: 'gone', recovered: 'back' }, () => nowMs)
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
  t.strictSame(told(), [], 'another short outage within ten seconds is not logged')
  nowMs += 4000
  outage.reportFailure(new Error('no'), {})
  nowMs += 6000
  outage.reportFailure(new Error('no'), {})
  nowMs += 11_000
  outage.reportFailure(new Error('no'), {})
  outage.reportRecovery()
  t.strictSame(told(), [
    ['gone', 2, undefined, undefined],
    ['back', 3, 17, undefined],
  ])
})

test('logs continuous failures every ten seconds', async (t) => {
  const { logger, lines } = collectLines()
  let nowMs = 0
  const outage = makeOutage(logger, { failed: 'gone' }, () => nowMs)
  for (; nowMs < 25_000; nowMs += 100) outage.reportFailure(new Error('no'), {})
  const later = { msg: 'gone', failures: 100, reason: 'no' }
  t.match(lines, [{ msg: 'gone', failures: 1, err: { message: 'no' } }, later, later])
  t.equal(lines.length, 3)
})
