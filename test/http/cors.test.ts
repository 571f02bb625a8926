// Browsers on other origins: off unless the deployment names them.
import { type Test, test } from 'tap'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'

const origin = 'https://garden.test'

async function start(t: Test, CORS_ORIGIN: string): Promise<string> {
  return (await startApp(t, undefined, { env: { CORS_ORIGIN } })).url
}

function preflight(url: string, from: string) {
  const headers = {
    origin: from,
    authorization: '',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  }
  return request(`${url}/plants`, { method: 'OPTIONS', headers })
}

test('without CORS_ORIGIN no other origin may read an answer', async (t) => {
  const url = await start(t, '')
  const answer = await request(`${url}/plants`, { headers: { origin } })
  t.equal(answer.headers.get('access-control-allow-origin'), null)
  const asked = await preflight(url, origin)
  assertProblem(t, asked, 405)
  t.equal(asked.headers.get('access-control-allow-origin'), null)
})

test('a listed origin may preflight, add, list and read the headers, also of errors', async (t) => {
  for (const named of [origin, `https://other.test, ${origin}`, 'true', '*']) {
    const url = await start(t, named)
    const allowed = named === '*' ? '*' : origin
    const asked = await preflight(url, origin)
    t.equal(asked.status, 204, named)
    t.equal(asked.headers.get('access-control-allow-origin'), allowed)
    t.match(asked.headers.get('access-control-allow-methods'), /GET.*POST/)
    t.match(asked.headers.get('access-control-allow-headers'), /authorization,content-type/)
    t.equal(asked.headers.get('access-control-max-age'), '7200')
    const answers = [
      await request(`${url}/plants`, { body: { name: 'a', tag: '' }, headers: { origin } }),
      await request(`${url}/plants`, { headers: { origin } }),
      await request(`${url}/plants?limit=x`, { headers: { origin } }),
      await request(`${url}/plants`, { headers: { origin, authorization: '' } }),
      await request(`${url}/nothing`, { headers: { origin } }),
    ]
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 400, 401, 404],
    )
    for (const { headers } of answers) {
      t.equal(headers.get('access-control-allow-origin'), allowed)
      t.match(headers.get('access-control-expose-headers'), /ETag.*Link.*WWW-Authenticate/)
      t.equal(headers.get('x-content-type-options'), 'nosniff')
    }
  }
})

test('an origin that is not listed gets no permission', async (t) => {
  const url = await start(t, `${origin}, https://other.test`)
  for (const answer of [
    await preflight(url, 'https://evil.test'),
    await request(`${url}/plants`, { headers: { origin: 'https://evil.test' } }),
  ])
    t.equal(answer.headers.get('access-control-allow-origin'), null)
})
