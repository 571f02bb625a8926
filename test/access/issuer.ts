// An issuer on the loopback address, which can be made to fail in any way.
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { Test } from 'tap'
import { type Meter, noMeter } from '../../src/metrics.ts'
import { loadSettings } from '../../src/settings.ts'
import { type Issuer, issuerOf } from '../../src/tokens/issuer.ts'
import { collectLines } from '../support/stores.ts'
import { listen } from '../support/wire.ts'
import { start } from './start.ts'

export const audience = 'https://plants.example/store'
export const issuerIn = (env: NodeJS.ProcessEnv) => issuerOf(loadSettings({}, env).settings) as Issuer

/** Shared, because generating an RSA key is slow. */
let rsa: KeyPairKeyObjectResult | undefined

function makeKeys(alg: string) {
  if (!/^[RP]S/.test(alg)) return generateKeyPair(alg, { extractable: true })
  rsa ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return rsa
}

/** `path`: the path of its issuer URL. */
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
    response.writeHead(body ? 200 : 404).end(JSON.stringify(body || {}))
  })
  const port = await listen(t, server)
  const url = `http://127.0.0.1:${port}${path}`

  async function makeSigner(kid: string, alg = 'ES256') {
    const { publicKey, privateKey } = await makeKeys(alg)
    const nowS = Math.floor(Date.now() / 1000)
    const scope = 'plants:read plants:write'
    const usual = { iss: url, aud: audience, sub: 'gardener', exp: nowS + 300, iat: nowS, scope }
    const sign = (claims: Record<string, unknown> = {}, header = {}) =>
      new SignJWT({ ...usual, ...claims } as JWTPayload)
        .setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header })
        .sign(privateKey)
    const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
    return { alg, sign, jwk }
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

/** Starts an issuer with one published key, and the function that signs with it. */
export async function startSigning(t: Test, path?: string) {
  const issuer = await startIssuer(t, path)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  return { issuer, sign, jwk }
}

/** A generous limit for busy machines, and a short pause, because tests wait for it. */
const short = { limitMs: 2000, pauseMs: 300 }

/** Starts a service in this process that accepts the tokens of an issuer. `told`: its log messages about the issuer. */
export async function startAccepting(t: Test, env: NodeJS.ProcessEnv, limits = short) {
  const { logger, lines } = collectLines()
  let refused: () => unknown = () => ({})
  const counter: Meter['counter'] = (name, _help, read) => {
    if (name === 'plant_store_oidc_refused_total') refused = read
  }
  const app = await start(t, { env, logger, limits, meter: { ...noMeter, counter } })
  const told = () => lines.filter(({ msg }) => msg.includes('OIDC_ISSUER'))
  return { ...app, lines, refused: () => refused() as Record<string, number>, told }
}
