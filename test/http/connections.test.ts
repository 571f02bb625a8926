// Connections are kept for many requests, not for any number.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { startApp } from '../support/service.ts'

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
