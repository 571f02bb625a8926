// RATE_LIMIT: how many requests each token has, and what its answers say of it.
import fastify from 'fastify'
import { type Test, test } from 'tap'
import { errors } from '../../src/plugins/errors.ts'
import { rateLimit } from '../../src/plugins/rate-limit.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { start } from './start.ts'

/** Builds an app whose requests are authenticated by any token; `read` counts the bodies that were read. */
async function buildLimited(t: Test, count: number, perMs: number) {
  let read = 0
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(errors, { basePath: '/' })
  app.decorateRequest('grant')
  app.get('/open', async () => ({}))
  await app.register(async (scope) => {
    scope.addHook('onRequest', async (request) => {
      const id = request.headers.authorization
      if (id === undefined) throw new Error('no token')
      Object.assign(request, { grant: { id } })
    })
    await scope.register(rateLimit, { count, perMs })
    scope.addHook('preParsing', async () => void read++)
    scope.get('/plants', async () => [])
    scope.post('/plants', async () => ({}))
  })
  const send = async (
    token: string | undefined,
    method: 'GET' | 'HEAD' | 'POST' = 'GET',
    url = '/plants',
  ) => {
    const headers = token === undefined ? {} : { authorization: token }
    const response = await app.inject({ method, url, headers, ...(method === 'POST' && { payload: {} }) })
    const { statusCode, headers: got } = response
    const { ratelimit, 'ratelimit-policy': policy, 'retry-after': retryAfter } = got
    return {
      statusCode,
      ratelimit,
      policy,
      retryAfter,
      type: got['content-type'],
      all: Object.keys(got),
      response,
    }
  }
  return { send, countRead: () => read }
}

test('each token has its requests, and answers say how many are left, in the fields of the draft alone', async (t) => {
  const { send } = await buildLimited(t, 2, 60_000)
  const policy = '"default";q=2;w=60'
  t.match(await send('a'), {
    statusCode: 200,
    ratelimit: '"default";r=1;t=60',
    policy,
    retryAfter: undefined,
  })
  t.match(await send('a', 'POST'), { statusCode: 200, ratelimit: '"default";r=0;t=60', policy })
  const { all, ...past } = await send('a', 'HEAD')
  t.match(past, { statusCode: 429, ratelimit: '"default";r=0;t=60', policy, retryAfter: '60' })
  t.notOk(all.some((name) => /^(x-)?ratelimit-(limit|remaining|reset)$/.test(name)))
  t.match(await send('b'), { statusCode: 200, ratelimit: '"default";r=1;t=60' })
})

test('a request past the limit is a problem, and its body is not read', async (t) => {
  const { send, countRead } = await buildLimited(t, 1, 1000)
  await send('a')
  const { response, type, retryAfter } = await send('a', 'POST')
  t.match([type, retryAfter], [/^application\/problem\+json/, '1'])
  t.match(response.json(), { type: '/problems/rate-limited', status: 429 })
  t.equal(countRead(), 1)
})

test('a client that waits as long as Retry-After says is served again', async (t) => {
  const { send } = await buildLimited(t, 1, 1000)
  await send('a')
  const { retryAfter } = await send('a')
  await new Promise((resolve) => setTimeout(resolve, Number(retryAfter) * 1000))
  t.match(await send('a'), { statusCode: 200, ratelimit: '"default";r=0;t=1' })
})

test('what needs no token, and what has none, costs nobody a request', async (t) => {
  const { send } = await buildLimited(t, 1, 60_000)
  t.match(await send('a', 'GET', '/open'), { statusCode: 200, ratelimit: undefined })
  t.match(await send('a', 'GET', '/none'), { statusCode: 404, ratelimit: undefined })
  t.match(await send(undefined), { statusCode: 500, ratelimit: undefined })
  t.match(await send('a'), { statusCode: 200 })
})

test('RATE_LIMIT counts additions and lists of a token together', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { RATE_LIMIT: '2/h' } })
  const statuses = []
  for (const body of [{ name: 'a', tag: '' }, undefined, { name: 'b', tag: '' }, undefined])
    statuses.push((await request(`${url}/plants`, body && { body })).status)
  t.same(statuses, [200, 200, 429, 429])
})

test('a request without the scope is counted, and its response has the fields', async (t) => {
  const { add, create } = await start(t, { env: { RATE_LIMIT: '9/h' } })
  const { status, headers } = await add(await create({ name: 'reader', scopes: ['plants:read'] }))
  t.same([status, headers.get('ratelimit-policy')], [403, '"default";q=9;w=3600'])
  t.match(headers.get('ratelimit'), /^"default";r=8;t=/)
})
