// An issuer on the loopback address: it says where its keys are, and can be made to fail in all ways.
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { Test } from 'tap'
import { createDirectory, sqlite } from '../support/engines.ts'
import { endGently, request, startService, startThreads } from '../support/service.ts'
import { collectLog } from '../support/stores.ts'
import { until } from '../support/until.ts'

export const audience = 'https://plants.example/store'

export type Signer = {
  kid: string
  alg: string
  sign: (claims?: Record<string, unknown>, header?: object) => Promise<string>
  jwk: JWK
}

/** To make a key for RSA costs more than all else that a signer does. */
let rsa: KeyPairKeyObjectResult | undefined

function makeKeys(alg: string) {
  if (!/^[RP]S/.test(alg)) return generateKeyPair(alg, { extractable: true })
  rsa ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return rsa
}

/** `path`: where its issuer URL ends. */
export async function startIssuer(t: Test, path = '/realm') {
  let keys: unknown[] = []
  let respond: RequestListener | undefined
  let fetches = 0
  const server = createServer((request, response) => {
    fetches++
    if (respond) return respond(request, response)
    const body = request.url?.endsWith('/keys')
      ? { keys }
      : request.url === `${path.replace(/\/$/, '')}/.well-known/openid-configuration` && {
          issuer: url,
          jwks_uri: `http://127.0.0.1:${port}/keys`,
        }
    response
      .writeHead(body ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(body || {}))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as { port: number }
  const url = `http://127.0.0.1:${port}${path}`

  async function makeSigner(kid: string, alg = 'ES256'): Promise<Signer> {
    const { publicKey, privateKey } = await makeKeys(alg)
    const nowS = Math.floor(Date.now() / 1000)
    const usual = {
      iss: url,
      aud: audience,
      sub: 'gardener',
      exp: nowS + 300,
      iat: nowS,
      scope: 'plants:read plants:write',
    }
    const sign = (claims: Record<string, unknown> = {}, header = {}) =>
      new SignJWT({ ...usual, ...claims } as JWTPayload)
        .setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header })
        .sign(privateKey)
    return { kid, alg, sign, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
  }
  return {
    url,
    port,
    makeSigner,
    get fetches() {
      return fetches
    },
    publish: (...published: unknown[]) => (keys = published),
    answer: (listener: RequestListener | undefined) => (respond = listener),
    env: { OIDC_ISSUER: url, OIDC_AUDIENCE: audience },
  }
}

/** Starts a service in this process that takes the tokens of an issuer; `list` and `add` send one. */
export async function startAccepting(t: Test, env: NodeJS.ProcessEnv) {
  const { log, logged } = collectLog()
  const database = await sqlite.createDatabase(t)
  const { url, metrics } = await startThreads(t, database, { THREADS: '1', ...env }, log)
  return { url, metrics, ...senders(url), ...readers(logged) }
}

/** With its full time-outs a process gets its keys sooner or later, however little of a processor it has. */
export const unhurried = { NODE_OPTIONS: '' }

/** The same in a process of its own. */
export async function spawnAccepting(t: Test, env: NodeJS.ProcessEnv) {
  const service = await startService(
    t,
    { DATABASE_URL: await sqlite.createDatabase(t), ...env },
    createDirectory(t),
  )
  endGently(t, service)
  return { ...service, ...senders(service.url), ...readers(() => service.output().stderr) }
}

function senders(url: string) {
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}` })
  const list = (token: string) => request(`${url}/plants`, { headers: headersOf(token) })
  const add = (token: string) =>
    request(`${url}/plants`, { body: { name: 'Alder', tag: '' }, headers: headersOf(token) })
  return { list, add }
}

/** `told`: the messages of the log so far that are about the issuer; a line may come later than its answer. */
function readers(logged: () => string) {
  const told = () => logged().match(/"msg":"[^"]*OIDC_ISSUER[^"]*"/g) ?? []
  return { logged, told, logs: (pattern: RegExp) => until(() => pattern.test(logged())) }
}
