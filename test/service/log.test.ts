// The log: bounded, with whole lines in order and without secrets, as JSON or as text.
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import fastify from 'fastify'
import { type Test, test } from 'tap'
import { openLog } from '../../src/log.ts'
import { toTextLines } from '../../src/log-text.ts'
import { makeMask } from '../../src/mask.ts'
import { createDirectory } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'

const options: Parameters<typeof openLog>[0] = { logLevel: 'info', logFormat: 'json', accessTokens: [] }
const own = 'plant_01234567_0123456789abcdefghijABCDEFGHIJ0123_012345'

/** Opens a log on a file. */
function open(t: Test, more: Partial<typeof options> = {}) {
  const path = join(createDirectory(t), 'log')
  const descriptor = openSync(path, 'w')
  t.teardown(() => closeSync(descriptor))
  const log = openLog({ ...options, ...more }, descriptor)
  return { log, text: () => readFileSync(path, 'utf8') }
}

const megabyte = `${'x'.repeat(2 ** 20 - 1)}\n`

test('lines of text and bytes are written in order, and end() waits for all of them', async (t) => {
  const { log, text } = open(t)
  let expected = ''
  for (let n = 0; n < 3000; n++) {
    const line = `{"n":"${n} ñ ${'x'.repeat(n % 500)}"}\n`
    expected += line
    const bytes = Buffer.from(line)
    log.sink.write(n % 2 === 0 ? line : bytes)
    bytes.fill(0)
  }
  await log.end()
  t.equal(text(), expected)
  t.equal(log.droppedLines(), 0)
  const first = await Promise.race([log.end().then(() => 'at once'), setImmediate('later')])
  t.equal(first, 'at once', 'nothing is left to write')
})

test('lines beyond 8 MiB are dropped and counted, and their number is logged once there is room', async (t) => {
  const { log, text } = open(t)
  for (let n = 0; n < 12; n++) log.sink.write(megabyte)
  const dropped = log.droppedLines()
  t.ok(dropped >= 3 && dropped <= 5, `${dropped}`)
  // Without the time limit of `end`, which a slow disk may exceed.
  for (let n = 0; n < 2; n++) await new Promise<void>((done) => log.sink.flush(done))
  const lines = text().trimEnd().split('\n')
  t.equal(lines.length, 12 - dropped + 1)
  t.match(JSON.parse(String(lines.at(-1))), { level: 40, lines: dropped, msg: /^log lines were dropped/ })
})

test('resumes a log when its file is writable again', async (t) => {
  const path = join(createDirectory(t), 'log')
  writeFileSync(path, '')
  const descriptor = openSync(path, 'r')
  const log = openLog(options, descriptor)
  log.sink.write('{"n":1}\n')
  await log.end()
  closeSync(descriptor)
  const writable = openSync(path, 'a')
  t.teardown(() => closeSync(writable))
  t.equal(writable, descriptor, 'the new descriptor has the same number')
  log.sink.write('{"n":2}\n')
  await log.end()
  t.equal(readFileSync(path, 'utf8'), '{"n":1}\n{"n":2}\n')
})

test('a token is masked in every percent-encoded spelling, and the line stays JSON', async (t) => {
  const secret = 'a/secret+of"mine\\é'
  const { log, text } = open(t, { accessTokens: [secret] })
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzZWNyZXQifQ.c2VjcmV0'
  const encode = (token: string) => Buffer.from(token).toString('hex').replaceAll(/../g, '%$&')
  const lower = encodeURIComponent(secret).replaceAll(/%../g, (code) => code.toLowerCase())
  const spellings = [
    ...[secret, own, jwt].flatMap((token) => [encode(token), encode(token).toUpperCase()]),
    lower,
    encodeURIComponent(encodeURIComponent(secret)),
    own.replaceAll('_', '%5F'),
    jwt.replaceAll('.', '%2e'),
  ]
  for (const spelling of spellings) log.logger.warn(`/x%22%0a%5c/${spelling}`)
  for (const spelling of spellings) log.logger.warn(log.mask(`/y/${spelling}`))
  await log.end()
  const lines = text().trimEnd().split('\n')
  const messages = lines.map((line) => JSON.parse(line).msg)
  t.same(messages.slice(0, spellings.length), spellings.fill('/x%22%0A%5C/***'))
  t.same(messages.slice(spellings.length), spellings.fill('/y/***'))
  t.equal(log.mask('/100%/%zz/%41'), '/100%/%zz/%41', 'leaves other texts unchanged')
})

test('tokens, passwords and values of a query are masked everywhere', async (t) => {
  const secret = 'a/secret "of" mine'
  const { log, text } = open(t, { accessTokens: [secret, 'secret-8'] })
  const { logger } = log
  // With the five parts of an encrypted one.
  const jwt = `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzZWNyZXQifQ.c2VjcmV0.c2VjcmV0.c2VjcmV0`
  const spaced = jwt.replace(/^eyJh/, 'ewog')
  const err = new Error(`cannot reach postgres://a:secret@b/c for ${own}`, { cause: new Error('cause') })
  logger.warn({ err }, `${secret} ${jwt} ${spaced} secret-8 explanation.${jwt}`)
  logger.warn({
    headers: { authorization: 'secret' },
    options: { password: 'secret' },
    answer: { headers: { authorization: 'secret' } },
    connectionString: 'secret',
  })
  const url = `/x/${encodeURIComponent(secret)}/${own.slice(0, -7)}`
  logger.warn({ err: secret, url }, 'external-collector.observability.example stays')
  const app = fastify({ loggerInstance: logger })
  t.teardown(() => app.close())
  app.get('/plants', async () => [])
  await app.inject({ url: '/plants?token=secret&a=secret', headers: { authorization: 'secret' } })
  await log.end()
  t.match(text(), 'external-collector.observability.example stays')
  t.match(text(), /"err":"\*\*\*".*\n.*"url":"\/plants"/)
  t.match(text(), 'postgres://a:***@b/c')
  t.match(text(), /for [^ ]+","stack":.*\\ncaused by: Error: cause\\n/, 'the cause is only in the stack')
  t.notMatch(text(), /secret|0123456789abc|c2VjcmV0/)
})

test('scans a text with many token prefixes in one pass', async (t) => {
  const mask = makeMask(['a-token-for-tests'])
  for (const part of ['eyJ', 'eyJa.', 'plant_', '://', 'e-', '://a:', '?password=']) {
    const startMs = performance.now()
    mask(part.repeat(2 ** 17 / part.length))
    assertWithin(t, performance.now() - startMs, 500, part)
  }
})

const plain = (line: object) => stripVTControlCharacters(toTextLines(`${JSON.stringify(line)}\n`))
const time = new Date(2030, 0, 2, 3, 4, 5, 6).getTime()

test('as text a request is one line, and control characters are escaped', async (t) => {
  const asked = { requestId: 'a-1', method: 'GET', url: '/a\u001b[2J\n' }
  const line = { level: 30, time, ...asked, status: 200, bytes: 12, token: 'a b', pid: 1, msg: 'request' }
  t.equal(plain(line), '03:04:05.006 GET /a\\x1b[2J\\x0a 200 requestId=a-1 bytes=12 token="a b"\n')
})

test('as text any other line has its level, its details, and the stack of an error', async (t) => {
  const err = { type: 'Error', message: 'odd', stack: 'Error: odd\n    at a\u009b' }
  const shown = plain({ level: 50, time, pid: 1, msg: 'failed', lines: 3, words: 'a \u009b', err })
  t.equal(shown, '03:04:05.006 ERROR failed lines=3 words="a \\x9b"\n    Error: odd\n        at a\\x9b\n')
  t.equal(toTextLines('{"time":17***}\x1b\n'), '{"time":17***}\\x1b\n', 'a line that is not JSON')
})

test('LOG_FORMAT=text writes text', async (t) => {
  const { log, text } = open(t, { logFormat: 'text' })
  log.logger.info({ a: 1 }, 'one')
  log.sink.write('{"level":30,"time":0,"method":"GET","url":"/","status":404,"msg":"request"}\n')
  await log.end()
  t.match(stripVTControlCharacters(text()), /^\S+ INFO one a=1\n\S+ GET \/ 404\n$/)
})
