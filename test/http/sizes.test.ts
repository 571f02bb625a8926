// The largest that is taken, and one byte more: request targets, header sections, bodies.
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'
import { compose, readAnswers, send } from '../support/wire.ts'

const maxUrlBytes = 8 * 1024
const maxHeaderBytes = 16 * 1024
const maxBodyBytes = 16 * 1024

/** A good target of a length. */
function makeTarget(length: number): string {
  return '/plants?limit='.padEnd(length - 1, '0').concat('5')
}

test('a request target has 8 KiB at most', async (t) => {
  const { port } = await startApp(t)
  t.equal((await send(port, compose({ target: makeTarget(maxUrlBytes) }))).status, 200)
  assertProblem(t, await send(port, compose({ target: makeTarget(maxUrlBytes + 1) })), 414)
})

/** A request whose target, names and values have so many bytes together: only they are counted. */
function makeRequest(bytes: number, target = '/plants'): Buffer {
  const counted = Buffer.concat([compose({ target })])
    .toString()
    .replace(/ HTTP\/1\.1|GET |: |\r\n/g, '').length
  return compose({ target, headers: { 'X-Long': 'x'.repeat(bytes - counted - 'X-Long'.length) } })
}

test('the head of a request is smaller than 16 KiB', async (t) => {
  const { port } = await startApp(t)
  t.equal((await send(port, makeRequest(maxHeaderBytes - 1))).status, 200)
  assertProblem(t, await send(port, makeRequest(maxHeaderBytes)), 431)
})

test('a target that is too long and a head that is too large have different answers', async (t) => {
  const { port } = await startApp(t)
  const cases: [target: number, bytes: number, status: number][] = [
    [maxUrlBytes, maxHeaderBytes, 431],
    [maxUrlBytes, 3 * maxHeaderBytes, 431],
    [maxUrlBytes + 1, maxHeaderBytes - 1, 414],
  ]
  for (const [target, bytes, status] of cases)
    assertProblem(t, await send(port, makeRequest(bytes, makeTarget(target))), status)
})

test('a head that comes bit by bit has the same limit', async (t) => {
  const { app, port } = await startApp(t)
  for (const [whole, status] of [
    [makeRequest(maxHeaderBytes - 1), 200],
    [makeRequest(maxHeaderBytes), 431],
    [compose({ target: makeTarget(2 * maxHeaderBytes) }), 431],
  ] as const) {
    const came = once(app.server, 'connection')
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
    socket.on('error', () => {})
    const [accepted] = await came
    for (let from = 0; from < whole.length && !accepted.destroyed && received === ''; from += 1000) {
      const read = accepted.bytesRead
      socket.write(whole.subarray(from, from + 1000))
      while (accepted.bytesRead === read && !accepted.destroyed) await new Promise(setImmediate)
    }
    while (readAnswers(received).length === 0) await once(socket, 'data')
    socket.destroy()
    t.equal(readAnswers(received)[0]?.status, status)
  }
})

test('a body has 16 KiB at most', async (t) => {
  const { url } = await startApp(t)
  const body = '{"name":"a","tag":""}'
  t.equal((await request(`${url}/plants`, { body: body.padEnd(maxBodyBytes) })).status, 200)
  assertProblem(t, await request(`${url}/plants`, { body: body.padEnd(maxBodyBytes + 1) }), 413)
  t.equal((await request(`${url}/plants`)).text, `[${body}]`)
})
