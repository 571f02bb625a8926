// Connections are kept for many requests, not for any number, and not for requests that do not arrive.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { startApp } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

test('the last answer of a connection closes it', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const most = 1000
  const ends = []
  for (let n = 1; n <= most + 1; n++) {
    const sent = request(`${url}/problems/id-conflict`, { method: 'HEAD', agent }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    if (answer.headers.connection === 'close') ends.push(n)
    if (answer.statusCode !== 200) t.fail(`request ${n} is answered ${answer.statusCode}`)
  }
  t.same(ends, [most])
})

test('a request whose head does not arrive in 10 s, or the rest in 20 s, is answered 408', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const half = (bytes: Buffer, less: number) => bytes.subarray(0, -less)
  const late = [
    half(compose(), 2),
    half(compose({ method: 'HEAD' }), 2),
    half(compose({ body: '{"name":"a","tag":""}' }), 9),
    half(compose({ headers: { Authorization: undefined } }), 2),
  ]
  const answers = await Promise.all(late.map((bytes) => send(port, bytes)))
  for (const answer of answers) {
    assertProblem(t, answer, 408)
    t.equal(answer.headers.get('connection'), 'close')
  }
})
