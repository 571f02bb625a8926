// An unexpected error ends the service: it is logged with its stack, and the exit code is 1.
import { test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { preload } from '../support/processes.ts'
import { request, type Service, startService } from '../support/service.ts'

const brokenOnSignal = `process.on('SIGUSR2', () => { throw new TypeError('unforeseen') })`

/** Makes the writer thread fail after it has added a plant. */
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

const failures: [title: string, code: string, fail: (service: Service) => unknown][] = [
  ['', brokenOnSignal, ({ child }) => child.kill('SIGUSR2')],
  [
    ' in the thread that writes',
    failingWriter,
    ({ url }) => request(`${url}/plants`, { body: { name: 'a', tag: '' } }).catch(() => {}),
  ],
]

for (const [title, code, fail] of failures)
  test(`logs an unexpected error${title}, and ends the service with exit code 1`, async (t) => {
    const DATABASE_URL = await sqlite.createDatabase(t)
    const service = await startService(t, { ...preload(code), DATABASE_URL, DRAIN_DELAY: '3600' })
    await fail(service)
    t.match(await service.ended, { code: 1, signal: null })
    const lines = service.output().stderr.trim().split('\n')
    const failure = lines.map((line) => JSON.parse(line)).find(({ level }) => level === 60)
    t.match(failure, { msg: 'the service failed', err: { message: 'unforeseen' } })
  })
