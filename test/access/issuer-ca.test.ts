// An issuer behind a certificate authority of its own: NODE_EXTRA_CA_CERTS, which Node reads as it starts, names it.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/wire.ts'
import { spawnAccepting, startIssuer } from './issuer.ts'

/** Makes an authority and a certificate of it for 127.0.0.1. */
function makeCertificates(t: Test) {
  const directory = createDirectory(t)
  const openssl = (line: string) =>
    execFileSync('openssl', line.split(' '), { cwd: directory, stdio: 'ignore' })
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  openssl(`req -x509 ${key} -keyout ca.key -out ca.pem -days 2 -subj /CN=garden`)
  openssl(`req ${key} -keyout key.pem -out request.pem -subj /CN=issuer`)
  writeFileSync(join(directory, 'names'), 'subjectAltName=IP:127.0.0.1\n')
  openssl('x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 2 -extfile names -out cert.pem')
  const read = (name: string) => readFileSync(join(directory, name))
  return { authority: join(directory, 'ca.pem'), key: read('key.pem'), cert: read('cert.pem') }
}

test('an issuer behind a private authority is trusted when NODE_EXTRA_CA_CERTS names that, and only then', {
  skip: skipWithout('openssl'),
}, async (t) => {
  const { authority, key, cert } = makeCertificates(t)
  const { makeSigner } = await startIssuer(t)
  const { sign, jwk } = await makeSigner('one')
  const server = createServer({ key, cert }, ({ url: path }, response) => {
    const document = { issuer: url, jwks_uri: `${url}/keys` }
    response.end(JSON.stringify(path === '/keys' ? { keys: [jwk] } : document))
  })
  const url: string = `https://127.0.0.1:${await listen(t, server)}`
  const env = { OIDC_ISSUER: url, OIDC_AUDIENCE: 'plants' }
  const token = await sign({ iss: url, aud: 'plants' })

  const [without, trusting] = await Promise.all([
    spawnAccepting(t, env),
    spawnAccepting(t, { ...env, NODE_EXTRA_CA_CERTS: authority }),
  ])
  t.equal((await without.list(token)).status, 503)
  await without.logs(/cannot be loaded/)
  t.match(without.logged(), /unable to verify the first certificate|timeout/)
  await until(async () => (await trusting.list(token)).status === 200)
})
