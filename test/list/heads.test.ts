// HEAD says what GET would, without a body: also where the request is refused (RFC 9110, section 9.3.2).
import { type Test, test } from 'tap'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { sqlite } from '../support/engines.ts'
import { startApp } from '../support/service.ts'
import { openStore } from '../support/stores.ts'
import { compose, exchange, type Parts, send } from '../support/wire.ts'

const names = ['etag', 'link', 'cache-control', 'content-type', 'retry-after', 'www-authenticate']

/** An app with two plants; what is put into `failure` is what its store then does. */
async function start(t: Test) {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database)
  await store.log.append(['"a"', '"b"'].map((name) => ({ item: `{"name":${name},"tag":""}`, id: undefined })))
  const failing: { failure?: Error } = {}
  const head: typeof store.log.head = (positions) =>
    failing.failure ? Promise.reject(failing.failure) : store.log.head(positions)
  return { ...(await startApp(t, database, { store: { ...store, log: { ...store.log, head } } })), failing }
}

const requests: [status: number, parts: Parts, failure?: Error][] = [
  [200, { target: '/plants?limit=1' }],
  [304, { target: '/plants?limit=1', headers: { 'If-None-Match': '*' } }],
  [400, { target: '/plants?limit=x' }],
  [401, { headers: { Authorization: undefined } }],
  [414, { target: `/plants?limit=${'1'.repeat(9000)}` }],
  [500, {}, new Error('broken')],
  [503, {}, new StoreUnavailable('unread', 'broken')],
]

test('HEAD has the status and the headers that GET has', async (t) => {
  const { port, failing } = await start(t)
  for (const [status, parts, failure] of requests) {
    if (failure) failing.failure = failure
    const get = await send(port, compose({ ...parts, method: 'GET' }))
    const head = await send(port, compose({ ...parts, method: 'HEAD' }))
    t.same([get.status, head.status], [status, status])
    t.equal(head.text, '')
    for (const name of names) t.equal(head.headers.get(name), get.headers.get(name), `${name} of ${status}`)
  }
})

test('a HEAD request that does not arrive in time is 408', async (t) => {
  const { app, port } = await start(t)
  app.server.headersTimeout = 300
  const answers = await exchange(port, 'HEAD /plants HTTP/1.1\r\nHost: a\r\n', Number.POSITIVE_INFINITY)
  t.match(answers, [{ status: 408 }])
})
