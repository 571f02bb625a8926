// A partition of a few seconds, after which the old primary is back and does not know that it is not one any more: a
// list is whole or refused, and what is cached meanwhile is whole.
import tap from 'tap'
import { startService, token } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startCluster } from './cluster.ts'
import { Ledger, list, post } from './ledger.ts'
import { startRelays } from './relay.ts'

tap.test('lists during and after a partition are whole or refused', { timeout: 120_000 }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const relays = await startRelays(t, cluster)
  const { url } = await startService(t, { DATABASE_URL: relays.url, LOG_LEVEL: 'error' })
  const ledger = new Ledger()
  const expected: string[] = []
  const add = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const id = expected.length
      await until(() => post(ledger, url, { name: `plant ${id}`, tag: '', id }, token))
      expected.push(`plant ${id}`)
    }
  }
  /** Lists of many lengths at once, so that every connection for reads is used. */
  const readAll = async (from: number) => {
    const limits = Array.from({ length: 20 }, (_, n) => from + n)
    const answers = await Promise.allSettled(
      limits.map((limit) => list(`${url}/plants?limit=${limit}`, token)),
    )
    return answers.flatMap((answer, index) => {
      if (answer.status === 'rejected')
        return /^Error: 503/.test(String(answer.reason)) ? [] : [answer.reason]
      const whole = expected.slice(0, limits[index])
      return answer.value.names.join() === whole.join() ? [] : [`a list of ${answer.value.names.length}`]
    })
  }

  await add(20)
  t.strictSame(await readAll(1), [])
  relays.to(cluster.primary.port).freeze()
  const old = cluster.primary
  await cluster.failOver()
  await add(20)
  relays.to(old.port).thaw()
  t.strictSame(await readAll(21), [], 'no list is short while the old primary is back')
  t.equal((await list(`${url}/plants`, token)).names.length, 40)
  old.kill()
  t.strictSame(await readAll(21), [], 'nor are those that were kept')
})
