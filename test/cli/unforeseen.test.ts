// A fault of the program itself, which nobody foresaw, ends it: with a stack to report, and never with a success.
import { type Test, test } from 'tap'
import { fill, open } from '../support/copies.ts'
import { sqlite } from '../support/engines.ts'
import { readPlants, writeInput } from '../support/imports.ts'
import { preload } from '../support/preload.ts'
import { request, type Service, spawnCli, startService } from '../support/service.ts'

const stack = /^plant-store: TypeError: unforeseen\n {4}at /
/** Breaks what the pages of a log are checked with. */
const brokenChecksums = `
  import { syncBuiltinESMExports } from 'node:module'
  import zlib from 'node:zlib'
  zlib.crc32 = () => { throw new TypeError('unforeseen') }
  syncBuiltinESMExports()`
/** Breaks the way of a plant to the writer thread. */
const brokenWriter = `
  import { MessagePort } from 'node:worker_threads'
  const send = MessagePort.prototype.postMessage
  MessagePort.prototype.postMessage = function (message, ...rest) {
    if (JSON.stringify(message).includes('Bad oak')) throw new TypeError('unforeseen')
    return send.call(this, message, ...rest)
  }`
const brokenOnSignal = `process.on('SIGUSR2', () => { throw new TypeError('unforeseen') })`

/** Lets a thread fail behind the plant that it has just added. */
const failingWriter = `
  import { syncBuiltinESMExports } from 'node:module'
  import { isMainThread } from 'node:worker_threads'
  import zlib from 'node:zlib'
  const { crc32 } = zlib
  zlib.crc32 = (...args) => {
    if (!isMainThread) setImmediate(() => { throw new TypeError('unforeseen') })
    return crc32(...args)
  }
  syncBuiltinESMExports()`

async function makeStore(t: Test, plants: number): Promise<string> {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  for (let left = plants; left > 0; left -= 20_000) await fill(store, Math.min(left, 20_000))
  await store.close()
  return url
}

const checks: [title: string, plants: number, code: string][] = [
  ['of a few plants', 10, brokenChecksums],
  ['of many plants', 60_000, brokenChecksums],
]

for (const [title, plants, code] of checks)
  test(`a check ${title} fails without a report`, async (t) => {
    const { ended, output } = spawnCli(t, ['verify', await makeStore(t, plants)], preload(code))
    t.match(await ended, { code: 1 })
    t.match(output(), { stdout: '', stderr: stack })
  })

test('an import that fails has added what was committed before', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, '{"name":"Oak","tag":""}\n{"name":"Bad oak","tag":""}\n')
  const args = ['import', path, '--batch', '1']
  const { ended, output } = spawnCli(t, args, { ...preload(brokenWriter), DATABASE_URL: url })
  t.match(await ended, { code: 1 })
  t.match(output(), { stderr: /plant-store: TypeError: unforeseen\n {4}at / })
  t.strictSame(await readPlants(url), [{ name: 'Oak', tag: '' }])
})

const failures: [title: string, code: string, fail: (service: Service) => unknown][] = [
  ['', brokenOnSignal, ({ child }) => child.kill('SIGUSR2')],
  [
    ' in the thread that writes',
    failingWriter,
    ({ url }) => request(`${url}/plants`, { body: { name: 'a', tag: '' } }).catch(() => {}),
  ],
]

for (const [title, code, fail] of failures)
  test(`a service that fails${title} says so, and ends at once, with 1`, {
    skip: process.platform === 'win32',
  }, async (t) => {
    const DATABASE_URL = await sqlite.createDatabase(t)
    const service = await startService(t, { ...preload(code), DATABASE_URL, DRAIN_DELAY: '3600' })
    await fail(service)
    t.strictSame(await service.ended, { code: 1, signal: null })
    const lines = service.output().stderr.trim().split('\n')
    const failure = lines.map((line) => JSON.parse(line)).find(({ level }) => level === 60)
    t.match(failure, { msg: 'the service failed', err: { message: 'unforeseen' } })
  })
