// The process is killed while it writes: what it acknowledged is there afterwards, once, in a log without gaps.
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { sqlite } from '../support/engines.ts'
import { countRounds, makeRandom, tellSeed } from '../support/full.ts'
import { request, type Service, startService } from '../support/service.ts'

const kills = countRounds(20, 3)
const writers = 32
/** Between the first acknowledgements of a round, one for each writer, and its kill. */
const maxRoundMs = 300

/** Adds plants, one after the other, until the service is gone; notes those that were acknowledged. */
async function write(service: Service, writer: string, acknowledge: (name: string) => void): Promise<void> {
  for (let n = 0; ; n++) {
    const name = `${writer}-${n}`
    const answer = await request(`${service.url}/plants`, { body: { name, tag: '' } }).catch(() => undefined)
    if (!answer) return
    if (answer.status !== 200) throw new Error(answer.text)
    acknowledge(name)
  }
}

test(`no acknowledged plant is lost in ${kills} kills under ${writers} writers`, async (t) => {
  tellSeed(t)
  const random = makeRandom()
  const database = await sqlite.createDatabase(t)
  const acknowledged = new Set<string>()
  let former: string[] = []
  for (let round = 0; round <= kills; round++) {
    const service = await startService(t, { DATABASE_URL: database, LOG_LEVEL: 'error' })
    const list = (await request(`${service.url}/plants`)).json() as Plant[]
    const names = list.map(({ name }) => name)
    const there = new Set(names)
    t.same(
      [...acknowledged].filter((name) => !there.has(name)),
      [],
      `round ${round}: all are there`,
    )
    t.equal(there.size, names.length, 'once')
    t.same(names.slice(0, former.length), former, 'in the former order')
    assertGapless(names.length)
    former = names
    if (round === kills) break
    const goal = acknowledged.size + writers
    const acknowledge = (name: string) => {
      acknowledged.add(name)
      if (acknowledged.size === goal) setTimeout(() => service.child.kill('SIGKILL'), random() * maxRoundMs)
    }
    await Promise.all(Array.from({ length: writers }, (_, n) => write(service, `${round}-${n}`, acknowledge)))
    t.match(await service.ended, { signal: 'SIGKILL' })
  }
  t.comment(`${acknowledged.size} acknowledged, ${former.length} there`)
  t.ok(acknowledged.size >= kills * writers)

  function assertGapless(length: number): void {
    const file = new DatabaseSync(fileURLToPath(database), { readOnly: true })
    const log = file
      .prepare('SELECT count(*) AS n, min(position) AS first, max(position) AS last FROM plants')
      .get()
    file.close()
    t.match(log, length === 0 ? { n: 0 } : { n: length, first: 1, last: length }, 'without a gap')
  }
})
