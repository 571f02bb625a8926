// Two services on one SQLite file, behind a proxy for instance: each list is fresh on both, and nothing is lost.
import { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startService } from '../support/service.ts'

const clients = 16
const perClient = isFull ? 860 : 40

test('16 clients add through two services on one file: each list is fresh, and none is lost', async (t: Test) => {
  const env = { DATABASE_URL: await sqlite.createDatabase(t), LOG_LEVEL: 'error' }
  const urls = [(await startService(t, env)).url, (await startService(t, env)).url]
  let added = 0
  let stale = 0
  const work = async (client: number) => {
    for (let n = 0; n < perClient; n++) {
      const [here, there] = [urls[(client + n) % 2], urls[(client + n + 1) % 2]]
      const body = { name: `${client}-${n}`, tag: '' }
      const { status } = await request(`${here}/plants`, { body })
      if (status !== 200) throw new Error(`an addition was answered with ${status}`)
      const before = ++added
      // The page that begins at the count of acknowledged plants ends with a link only if there are more.
      const { headers } = await request(`${there}/plants?limit=${before - 1}`)
      if (before > 1 && headers.get('link') === null) stale++
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => work(client)))
  t.equal(stale, 0, 'lists without plants that were acknowledged before')
  const lists = await Promise.all(urls.map((url) => request(`${url}/plants`)))
  const names = lists.map((answer) => (answer.json() as Plant[]).map(({ name }) => name))
  t.equal(names[0]?.length, clients * perClient)
  t.equal(new Set(names[0]).size, clients * perClient)
  t.strictSame(names[0], names[1])
  t.equal(lists[0]?.headers.get('etag'), lists[1]?.headers.get('etag'))
})
