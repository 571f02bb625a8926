// The log of a service process: one line per request, and a shutdown that does not wait for the reader of the log.
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { ask, findAdmin, request, type Service, startService, token } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

const patienceMs = 15_000
/** A token as `openssl rand -base64 16` prints it. */
const padded = 'MTIzNDU2Nzg5MGFiYw=='
const own = 'plant_01234567_0123456789abcdefghijABCDEFGHIJ0123_012345'

/** The access lines so far, without the last one, which may be incomplete. */
function readLines(service: Service): Record<string, unknown>[] {
  const lines = service.output().stderr.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
}

test('each request gets one line, without tokens or values of its query', async (t) => {
  const env = { TRUST_PROXY: 'loopback', LOG_FORMAT: 'json', ACCESS_TOKENS: `${token},${padded}` }
  const service = await startService(t, env, createDirectory(t))
  const body = { name: 'a', tag: '' }
  await request(`${service.url}/plants`, { body, headers: { 'x-request-id': 'mine-1' } })
  const forwarded = { 'x-forwarded-for': '192.0.2.7' }
  await request(`${service.url}/plants?limit=1`, { headers: forwarded })
  await request(`${service.url}/plants?limit=x`, { method: 'HEAD' })
  await request(`${service.url}/plants?limit=secret`)
  await request(`${service.url}/${own}?a=secret&b=secret`, { headers: { authorization: 'Bearer secret' } })
  const misplaced = { authorization: `Bearer ${own}`, 'x-forwarded-for': own }
  await request(`${service.url}/plants`, { headers: misplaced })
  for (const target of [`/plants?${padded}&b==secret&c=`, '/plants#a=secret', '/%ff', `/${'x'.repeat(2000)}`])
    await send(Number(new URL(service.url).port), compose({ target }))
  t.match(await service.stop(), { code: 0 })
  t.match(readLines(service), [
    { level: 30, method: 'POST', url: '/plants', route: '/plants', status: 200, requestId: 'mine-1' },
    { method: 'GET', status: 200, remoteAddress: '192.0.2.7', token: /./, bytes: 23 },
    { method: 'HEAD', status: 400, bytes: 0 },
    { status: 400, problem: 'invalid-request', remoteAddress: '127.0.0.1' },
    { url: /^\/\*\*\*/, route: undefined, status: 404, problem: 'not-found' },
    { method: 'GET', status: 401, problem: 'unauthorized', token: undefined, remoteAddress: '***' },
    { url: '/plants?***&b=&c=', status: 400 },
    { url: '/plants#a=', status: 400, durationMs: Number },
    { url: '/%ff', status: 400, problem: 'invalid-request' },
    { url: /^\/x{1023}$/ },
  ])
  t.notMatch(service.output().stderr, /secret|0123456789abc|a-token-for-tests|incoming/)
})

const noIpv6 = !Object.values(networkInterfaces()).some((own) => own?.some(({ family }) => family === 'IPv6'))

test('with HOST=:: logs the IPv4 address of a client in IPv4 form', { skip: noIpv6 }, async (t) => {
  const service = await startService(t, { HOST: '::', LOG_FORMAT: 'json' }, createDirectory(t))
  await request(`http://127.0.0.1:${new URL(service.url).port}/plants`)
  // Written soon, not only at the end.
  await service.logs(/"msg":"request"}\n/)
  const addresses = readLines(service).map(({ remoteAddress }) => remoteAddress)
  t.same(addresses, ['127.0.0.1'])
})

test('responds and shuts down even if nobody reads its log', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  service.child.stderr.pause()
  // Access lines of 1 KB each.
  for (let round = 0; round < 30; round++)
    await Promise.all(Array.from({ length: 50 }, () => ask(`${service.url}/${'x'.repeat(900)}`)))
  t.equal((await request(`${service.url}/plants`)).text, '[]')
  const ended = once(service.child, 'exit', { signal: AbortSignal.timeout(patienceMs) })
  service.child.kill('SIGTERM')
  t.same(await ended, [null, 'SIGTERM'])
})

test('counts lines as dropped after the reader of the log has exited, and exits with 0', async (t) => {
  const service = await startService(t, { ADMIN_PORT: '0' }, createDirectory(t))
  const admin = await findAdmin(service)
  service.child.stderr.destroy()
  const dropped = async () => {
    const { text } = await ask(`${admin}/metrics`)
    return Number(/^plant_store_log_lines_dropped_total (\d+)/m.exec(text)?.[1])
  }
  for (const signal = AbortSignal.timeout(patienceMs); (await dropped()) === 0; signal.throwIfAborted())
    t.equal((await request(`${service.url}/plants`)).status, 200)
  t.match(await service.stop(), { code: 0, signal: null })
})
