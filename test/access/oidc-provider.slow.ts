// A real issuer, oidc-provider, with client credentials: it comes late, rotates its keys, goes and comes back.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
// @ts-expect-error: it has no types of its own.
import { Provider } from 'oidc-provider'
import { type Test, test } from 'tap'
import { until } from '../support/until.ts'
import { audience, spawnAccepting } from './issuer.ts'

const scopes = 'plants:read plants:write'

async function makeKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' }
}

/** An issuer at an address that stays; `start` begins anew with these keys, of which it signs with the first. */
async function reserve(t: Test) {
  const placeholder = createServer().listen(0, '127.0.0.1')
  await once(placeholder, 'listening')
  const { port } = placeholder.address() as { port: number }
  await new Promise((done) => placeholder.close(done))
  const url = `http://127.0.0.1:${port}`
  let server: Server | undefined

  async function kill(): Promise<void> {
    const closing = server
    server = undefined
    closing?.closeAllConnections()
    if (closing) await new Promise((done) => closing.close(done))
  }

  async function start(...keys: JWK[]): Promise<void> {
    await kill()
    const resource = { scope: scopes, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }
    const provider = new Provider(url, {
      clients: [
        {
          client_id: 'gardener',
          client_secret: 'a-secret-for-tests',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: 'ES256',
        },
      ],
      jwks: { keys },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => audience,
          useGrantedResource: () => true,
          getResourceServerInfo: () => resource,
        },
      },
    })
    server = createServer(provider.callback()).listen(port, '127.0.0.1')
    // What is kept alive would be cut with the issuer, in the middle of a request.
    server.maxRequestsPerSocket = 1
    await once(server, 'listening')
  }

  async function issue(scope = scopes): Promise<string> {
    const answer = await fetch(`${url}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('gardener:a-secret-for-tests')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource: audience }),
    })
    const issued = (await answer.json()) as { access_token: string }
    if (!answer.ok) throw new Error(JSON.stringify(issued))
    return issued.access_token
  }

  t.teardown(kill)
  return { url, start, kill, issue, env: { OIDC_ISSUER: url, OIDC_AUDIENCE: audience } }
}

test('a real issuer comes after the service, rotates its keys, goes away and comes back', async (t) => {
  const issuer = await reserve(t)
  const [first, second, third, fourth] = await Promise.all(['1', '2', '3', '4'].map(makeKey))
  // While a replica runs, it would load the keys in that moment.
  await issuer.start(first as JWK)
  const early = await issuer.issue()
  await issuer.kill()
  // Two replicas: each has keys of its own.
  const replicas = await Promise.all([spawnAccepting(t, issuer.env), spawnAccepting(t, issuer.env)])
  const all = (token: string, status: number) =>
    until(async () => {
      const answers = await Promise.all(replicas.map(({ list }) => list(token)))
      return answers.every((answer) => answer.status === status)
    })

  await all(early, 503)
  await issuer.start(first as JWK)
  await all(early, 200)
  for (const { add, list } of replicas) {
    t.equal((await add(await issuer.issue())).status, 200)
    const reader = await issuer.issue('plants:read')
    t.equal((await list(reader)).status, 200)
    t.equal((await add(reader)).status, 403)
    t.equal((await list(`${reader.slice(0, -8)}AAAAAAAA`)).status, 401)
  }

  await issuer.start(second as JWK, first as JWK)
  const overlapping = await issuer.issue()
  await all(overlapping, 200)
  await all(early, 200)

  await issuer.start(third as JWK)
  const next = await issuer.issue()
  await all(next, 200)
  await issuer.kill()
  await all(next, 200)

  await issuer.start(fourth as JWK)
  const unknown = await issuer.issue()
  await issuer.kill()
  await all(unknown, 503)
  await all(next, 200)
  await issuer.start(fourth as JWK)
  await all(unknown, 200)
  // The first key is gone: its tokens end with the minute for which their verdict is cached.
  await all(early, 401)
  for (const { told, output } of replicas) {
    t.ok(told().length <= 4, `${told().length} lines for two outages`)
    t.notMatch(output().stderr, '"level":50')
  }
})
