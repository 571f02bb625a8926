// What is open to everyone: how documents, pages and assets are compressed, cached and asked for again.
import { syncBuiltinESMExports } from 'node:module'
import zlib from 'node:zlib'
import fastify from 'fastify'
import { type Test, test } from 'tap'
import { documentCodings, makeNegotiator } from '../../src/http/codings.ts'
import { serveDocument } from '../../src/site/documents.ts'
import { findAssets } from '../support/assets.ts'
import { ask, decode, type Reply } from '../support/coded.ts'
import { sqlite } from '../support/engines.ts'
import { startApp } from '../support/service.ts'

const choices: [accepted: string | undefined, coding: string][] = [
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP;Q=0.5', 'gzip'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip, zstd', 'zstd'],
  ['br;q=0.1, gzip;q=0.2', 'gzip'],
  ['br;q=0.5, zstd;q=0.5, gzip;q=0.5', 'br'],
  ['deflate, compress', 'identity'],
  ['*', 'identity'],
  ['*;q=0.5, identity;q=0', 'gzip'],
  ['gzip;q=0.5, *;q=0.1', 'gzip'],
  ['gzip;q=0', 'identity'],
  ['gzip;q=0.000', 'identity'],
  ['identity, gzip;q=0.5', 'identity'],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['gzip;q=0.001', 'gzip'],
  ['identity;q=0', 'gzip'],
  ['identity;q=0, gzip;q=0', 'br'],
  ['identity;q=0, gzip', 'gzip'],
  ['gzip, *;q=0', 'gzip'],
  ['*;q=0', 'identity'],
  ['identity;q=0, *;q=0', 'identity'],
  [' ,, gzip ;\tq=1.000 ,', 'gzip'],
  // What is malformed counts for nothing.
  ['gzip;q=1.1', 'identity'],
  ['gzip;q=0.1234', 'identity'],
  ['gzip;q=-1', 'identity'],
  ['gzip;q', 'identity'],
  ['gz ip', 'identity'],
  ['"gzip"', 'identity'],
]

const negotiate = makeNegotiator(documentCodings)
const chooseCoding = (accepted: string | undefined) => negotiate(accepted)[0]

test('the coding is the one that the client prefers', async (t) => {
  for (const [accepted, coding] of choices) t.equal(chooseCoding(accepted), coding, `${accepted}`)
})

test('a long Accept-Encoding is read in one pass', async (t) => {
  for (const part of ['gzip;q=', ' ', '\t;', 'a', ',', 'gzip; ', '*;q=0.']) {
    const accepted = part.repeat(1_000_000 / part.length)
    t.equal(chooseCoding(`${accepted},br`), 'br', part)
  }
})

const documents = ['docs', 'problems/unread', 'openapi.yaml', 'openapi.json', 'openapi-3.0.json']

/** What must be the same in each answer about the same form of a document. */
const lasting = ({ headers }: Reply) => [headers.etag, headers.vary, headers['cache-control']]

async function start(t: Test): Promise<{ url: string; targets: string[] }> {
  const { url, port } = await startApp(t, await sqlite.createDatabase(t))
  const targets = [...documents.map((path) => `${url}/${path}`)]
  targets.push(...(await findAssets(port)).map((path) => url + path))
  return { url, targets }
}

test('each document comes in each coding, which its entity tag names', async (t) => {
  const { targets } = await start(t)
  t.ok(targets.length > documents.length + 3)
  for (const target of targets) {
    const plain = await ask(target, {})
    t.match(plain, { status: 200, headers: { 'content-encoding': undefined, vary: 'Accept-Encoding' } })
    const etags = new Set([plain.headers.etag])
    for (const [coding, decompress] of Object.entries(decode)) {
      const coded = await ask(target, { 'accept-encoding': coding })
      t.match(
        coded,
        { status: 200, headers: { 'content-encoding': coding, vary: 'Accept-Encoding' } },
        target,
      )
      t.equal(coded.headers['content-type'], plain.headers['content-type'])
      t.ok(decompress(coded.body).equals(plain.body), `${target} in ${coding}`)
      etags.add(coded.headers.etag)
    }
    t.equal(etags.size, 4)
    for (const etag of etags) t.match(etag, /^"[\w-]+"$/)
  }
})

test('a document is compressed once for all who ask for it', async (t) => {
  const described = Object.getOwnPropertyDescriptor(zlib, 'gzip')
  const { gzip } = zlib
  let made = 0
  const replace = (value: unknown) => {
    Object.defineProperty(zlib, 'gzip', { ...described, value })
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(gzip))
  replace((...args: Parameters<typeof gzip>) => {
    made++
    gzip(...args)
  })
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const all = [1, 2, 3].map(() => ask(`${url}/openapi.json`, { 'accept-encoding': 'gzip' }))
  for (const answer of await Promise.all(all)) t.equal(answer.headers['content-encoding'], 'gzip')
  t.equal(made, 1)
})

test('who has a document is told so; its head is that of the whole', async (t) => {
  const { targets } = await start(t)
  for (const target of targets)
    for (const coding of ['identity', 'br']) {
      const headers = { 'accept-encoding': coding }
      const whole = await ask(target, headers)
      const head = await ask(target, headers, 'HEAD')
      t.equal(head.status, 200)
      t.equal(head.body.length, 0)
      for (const name of ['content-type', 'content-encoding', 'content-length'])
        t.equal(head.headers[name], whole.headers[name], `${target} ${name}`)
      t.same(lasting(head), lasting(whole))
      for (const condition of [
        whole.headers.etag,
        `W/${whole.headers.etag}`,
        `"x", ${whole.headers.etag}`,
        '*',
      ])
        for (const method of ['GET', 'HEAD']) {
          const had = await ask(target, { ...headers, 'if-none-match': condition }, method)
          t.match([had.status, had.body.length], [304, 0], `${target} ${condition}`)
          t.same(lasting(had), lasting(whole))
        }
      t.match(await ask(target, { ...headers, 'if-none-match': '"x"' }), { status: 200 })
    }
})

test('an entity tag holds for its coding alone', async (t) => {
  const { url } = await start(t)
  const { headers } = await ask(`${url}/openapi.yaml`, { 'accept-encoding': 'br' })
  const gzip = { 'accept-encoding': 'gzip', 'if-none-match': headers.etag }
  t.match(await ask(`${url}/openapi.yaml`, gzip), { status: 200, headers: { 'content-encoding': 'gzip' } })
})

test('a false If-Match is refused', async (t) => {
  const { url } = await start(t)
  const whole = await ask(`${url}/openapi.yaml`, {})
  const refused = await ask(`${url}/openapi.yaml`, { 'if-match': '"x"' })
  t.equal(refused.status, 412)
  t.match(refused.headers['content-type'], 'application/problem+json')
  t.notOk(refused.headers.etag)
  t.match(await ask(`${url}/openapi.yaml`, { 'if-match': whole.headers.etag }), { status: 200 })
})

test('assets are kept for ever, for their URL names their version; pages are asked for again', async (t) => {
  const { url, targets } = await start(t)
  for (const target of targets) {
    const isAsset = target.includes('/static/')
    const { headers } = await ask(target, {})
    t.equal(headers['cache-control'], isAsset ? 'public, max-age=31536000, immutable' : 'no-cache', target)
  }
  const [asset = ''] = targets.filter((target) => target.includes('/static/'))
  for (const missing of [asset.replace(/static\/\w/, 'static/x'), `${asset}x`, `${url}/docs/static/x.js`])
    t.match(await ask(missing, {}), { status: 404, headers: { 'content-type': 'application/problem+json' } })
})

test('no coding is sent that was refused, over a connection with several lines of Accept-Encoding', async (t) => {
  const { url } = await start(t)
  const answer = await ask(`${url}/docs`, { 'accept-encoding': ['br;q=0', 'zstd;q=0.5', 'gzip'] })
  t.equal(answer.headers['content-encoding'], 'gzip')
})

test('a page of another origin is told that the answer varies by both', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), {
    env: { CORS_ORIGIN: 'https://a.test,https://b.test' },
  })
  const { headers } = await ask(`${url}/openapi.json`, { origin: 'https://a.test' })
  t.equal(headers.vary, 'Origin, Accept-Encoding')
})

test('a document that could not be made is made again for the next client', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  let calls = 0
  serveDocument(app, '/late', { type: 'text/plain' }, async () => {
    calls++
    if (calls === 1) throw new Error('not yet')
    return 'here it is'
  })
  t.equal((await app.inject('/late')).statusCode, 500)
  t.equal((await app.inject('/late')).body, 'here it is')
  t.equal((await app.inject('/late')).body, 'here it is')
  t.equal(calls, 2)
})

test('a compression that failed is tried again', async (t) => {
  const described = Object.getOwnPropertyDescriptor(zlib, 'gzip')
  const set = (value: unknown) => {
    Object.defineProperty(zlib, 'gzip', { ...described, value })
    syncBuiltinESMExports()
  }
  t.teardown(() => set(described?.value))
  const app = fastify()
  t.teardown(() => app.close())
  serveDocument(app, '/text', { type: 'text/plain' }, () => 'text')
  const ask = () => app.inject({ url: '/text', headers: { 'accept-encoding': 'gzip' } })
  // Such is a machine without memory for a codec.
  set((_bytes: Buffer, _options: object, done: (error: Error) => void) => done(new Error('no memory')))
  t.equal((await ask()).statusCode, 500)
  set(described?.value)
  t.equal(String(zlib.gunzipSync((await ask()).rawPayload)), 'text')
})
