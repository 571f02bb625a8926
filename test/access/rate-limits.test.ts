// RATE_LIMIT: the number of requests per token, and its headers.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { assertProblem } from '../support/problem.ts'
import { request } from '../support/service.ts'
import { compose, exchange, send } from '../support/wire.ts'
import { ask, start } from './start.ts'

/** Starts a service with the tokens `a` and `b`. */
const startLimited = (t: Test, RATE_LIMIT: string) => start(t, { env: { RATE_LIMIT, ACCESS_TOKENS: 'a,b' } })

test('counts the requests of each token separately, and returns how many are left', async (t) => {
  const { url, list, add } = await startLimited(t, '2/h')
  const head = { method: 'HEAD', headers: { authorization: 'Bearer a' } }
  for (const [asked, status, left] of [
    [() => list('a'), 200, 1],
    [() => add('a'), 200, 0],
    [() => request(`${url}/plants`, head), 429, 0],
    [() => list('b'), 200, 1],
    [() => list('a'), 429, 0],
  ] as const) {
    const answer = await asked()
    t.equal(answer.status, status)
    t.equal(answer.headers.get('ratelimit-policy'), '"default";q=2;w=3600')
    t.match(answer.headers.get('ratelimit'), new RegExp(`^"default";r=${left};t=3[56]\\d\\d$`))
    t.match(answer.headers.get('retry-after'), status === 429 ? /^3[56]\d\d$/ : null)
  }
})

test('counts every one of several concurrent requests', async (t) => {
  const { port } = await startLimited(t, '2/h')
  const one = compose({ headers: { Authorization: 'Bearer a' } })
  const answers = await exchange(port, Buffer.concat([one, one, one, one]), 4)
  const told = answers.map(({ status, headers }) => `${status} ${headers.get('ratelimit')?.slice(10, 13)}`)
  t.strictSame(told, ['200 r=1', '200 r=0', '429 r=0', '429 r=0'])
})

test('a request over the limit gets 429 before its body is read', async (t) => {
  const { port, list } = await startLimited(t, '1/h')
  await list('a')
  const headers = { Authorization: 'Bearer a', 'Content-Length': '100' }
  const { type } = assertProblem(t, await send(port, compose({ body: '', headers })), 429)
  t.equal(type, '/problems/rate-limited')
})

test('serves a client again after it has waited for Retry-After', async (t) => {
  const { list } = await startLimited(t, '1/s')
  await list('a')
  const { headers } = await list('a')
  await sleep(Number(headers.get('retry-after')) * 1000)
  t.equal((await list('a')).status, 200)
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() - 3_600_000 })
  const after = [await list('a'), await sleep(1100), await list('a')]
  t.match(after, [{ status: 200 }, undefined, { status: 200 }], 'the clock was set back')
})

test('does not count a request that needs no token, or has an invalid one', async (t) => {
  const { url, list } = await startLimited(t, '1/h')
  for (const [path, token] of [
    ['openapi.yaml', 'a'],
    ['none', 'a'],
    ['plants', 'c'],
    ['plants', undefined],
  ] as const)
    t.equal((await ask(`${url}/${path}`, token)).headers.get('ratelimit'), null, path)
  t.equal((await list('a')).status, 200)
})
