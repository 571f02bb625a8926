// Tokens of an issuer beside opaque ones.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { getList, pages, startPlantStore } from '../contenders.ts'
import { compare, type Scenario } from '../findings.ts'
import { leastAtMost, leastMoreAtMost } from '../goals.ts'
import type { RequestKind } from '../load/job.ts'

/** So many that a verdict is never in the cache of its connection. */
const different = 3000

/** One JWT over and over, and many in turn, beside the same requests with an opaque token. */
export const jwt: Scenario = {
  name: 'jwt',
  title: 'GET ?limit=100 with tokens of an issuer, 32 connections',
  async run(bench) {
    const issuer = await startIssuer()
    const off = await startPlantStore(bench, { name: 'opaque token, no issuer' })
    const on = await startPlantStore(bench, { name: 'opaque token', env: issuer.env })
    const tokens = await Promise.all(Array.from({ length: different }, (_, n) => issuer.sign(n)))
    const bearing = (token: string): RequestKind => {
      return { ...getList, headers: { Authorization: `Bearer ${token}` } }
    }
    const all = tokens.map(bearing)
    const servers = [off, on, { ...on, name: 'one JWT' }, { ...on, name: `${different} JWTs in turn` }]
    try {
      return await compare(bench, {
        work: jwt.title,
        ...pages,
        servers,
        each: [{}, {}, { turns: all.slice(0, 1) }, { turns: all }],
        judge: ([without, opaque, one, many]) => [
          leastAtMost('CPU per request, opaque / no issuer', [opaque, without], [1.03, 1]),
          leastMoreAtMost('CPU of one JWT', [one, opaque], [2.5, 1.5]),
          leastMoreAtMost('CPU of JWTs in turn', [many, opaque], [20, 15]),
        ],
      })
    } finally {
      issuer.close()
    }
  },
}

async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }]
  const server = createServer((request, response) => {
    const isKeys = request.url === '/keys'
    response.end(JSON.stringify(isKeys ? { keys } : { issuer: url, jwks_uri: `${url}/keys` }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    env: { OIDC_ISSUER: url, OIDC_AUDIENCE: 'plants' },
    sign: (n: number) =>
      new SignJWT({ iss: url, aud: 'plants', sub: `gardener ${n}`, jti: `${n}`, scope: 'plants:read' })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' })
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey),
    close: () => server.close(),
  }
}
