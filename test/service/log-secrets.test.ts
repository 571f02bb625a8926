// No token gets into the log, in no form of it: not from where it belongs, and not from where a client puts it by mistake.
import { connect } from 'node:net'
import { type Test, test } from 'tap'
import { promisedMs } from '../../src/limits.ts'
import { makeMask } from '../../src/logging/secrets.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { createDirectory } from '../support/engines.ts'
import { request, startService } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
/** Its form is enough: no issuer has to have made it. */
const jwt = `${base64url({ alg: 'ES256' })}.${base64url({ sub: 'gardener' })}.${'s'.repeat(86)}`
/** Characters that JSON and URLs write otherwise. */
const own = 'open-sesame "quoted" \\ a+b/c='

/** Every character as a URL may spell it. */
const escapeAll = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&')

async function logOf(t: Test, LOG_FORMAT: string): Promise<string> {
  const env = { LOG_FORMAT, LOG_LEVEL: 'trace', ACCESS_TOKENS: `${own},short`, TRUST_PROXY: 'true' }
  const service = await startService(t, env, createDirectory(t))
  const { url } = service
  const port = Number(new URL(url).port)
  for (const secret of [makeToken().token, own, jwt]) {
    const authorization = `Bearer ${secret}`
    for (const headers of [
      { authorization },
      { authorization, 'x-request-id': secret },
      { authorization, traceparent: `00-${secret}-01` },
      { authorization, 'x-forwarded-for': secret },
    ])
      await request(`${url}/plants`, { headers })
    await request(`${url}/plants?access_token=${encodeURIComponent(secret)}`)
    await request(`${url}/plants?access_token=${escapeAll(secret)}`)
    const again = encodeURIComponent(escapeAll(secret))
    for (const twice of [encodeURIComponent(encodeURIComponent(secret)), again, again.replaceAll('%', '%25')])
      await request(`${url}/plants?access_token=${twice}`)
    await request(`${url}/plants?access_token=${encodeURI(secret).replaceAll('+', '%2b')}`)
    await request(`${url}/${encodeURIComponent(secret)}`)
    await send(port, compose({ target: `/${secret.split(' ')[0]}` }))
    await send(port, `CONNECT ${encodeURIComponent(secret)}:1 HTTP/1.1\r\nHost: a\r\n\r\n`)
    const broken = connect(port, '127.0.0.1').resume().end(`GET / HTTP/1.1\r\n${authorization}\r\n\r\n`)
    await new Promise((resolve) => broken.on('close', resolve))
  }
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  return service.output().stderr
}

for (const format of ['json', 'text'])
  test(`${format}: no token is in the log, wherever it was sent`, async (t) => {
    const log = await logOf(t, format)
    const isAccess = format === 'json' ? /"msg":"request"/g : /(GET|POST) \//g
    t.equal(log.match(isAccess)?.length, 36, 'the requests are')
    t.ok(log.includes('***'))
    for (const part of [
      'plant_',
      'Bearer',
      '"quoted',
      'quoted%22',
      'a+b/c',
      'a%2Bb',
      'a%2bb',
      'eyJ',
      'sss',
      '%73%73%73',
      '%6c%61%6e%74',
      '%256c%2561',
      '%25256c',
      'quoted%2522',
    ])
      t.notOk(log.includes(part), part)
  })

test('a token of ACCESS_TOKENS is masked from eight characters on', (t) => {
  const mask = makeMask(['garden12', 'garden1'])
  t.equal(mask('/plants?at=garden12'), '/plants?at=***')
  t.equal(mask('/plants?at=garden1'), '/plants?at=garden1')
  t.end()
})

test('the password of a URL is masked, and nothing similar', async (t) => {
  const mask = makeMask([])
  const target = (user: string) => `"url":"http://${user}h:80/plants?limit=1"`
  t.equal(mask(target('ada:water:ing@')), target('ada:***@'))
  t.equal(mask('a://b:secr@'), 'a://b:***@')
  for (const text of [
    target(''),
    target('ada@'),
    '"url":"/plants?at=12:30@noon"',
    '"http://h:80","mail":"a@b"',
  ])
    t.equal(mask(text), text)
})

test('a text with many beginnings of tokens is scanned in one pass', async (t) => {
  const text = 'eyJ'.repeat(60_000)
  const startMs = performance.now()
  t.equal(makeMask([])(text), text)
  t.ok(performance.now() - startMs < promisedMs)
})
