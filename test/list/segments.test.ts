// Segments: what long lists are read from is what the log holds, whether it is there or not.
import { type Test, test } from 'tap'
import { segmentBytes, segmentPlants } from '../../src/limits.ts'
import { describeFault } from '../../src/maintenance/verify/faults.ts'
import { verifyStore } from '../../src/maintenance/verify/verify-store.ts'
import type { Entry } from '../../src/store/engine.ts'
import { type Engine, engines } from '../support/engines.ts'
import { openLog } from '../support/logs.ts'
import { request, spawnCli, startApp } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'
import { unavailable } from '../support/stores.ts'

const plants = 2 * segmentPlants + 500

/** The plants numbered from `first` on, with a tag of `length`. */
function entries(first: number, count: number, length = 10): Entry[] {
  return Array.from({ length: count }, (_, n) => ({
    item: `{"name":"plant ${first + n} 🌿","tag":"${'x'.repeat(length)}"}`,
    id: undefined,
  }))
}

function arrayOf(entries: Entry[]): string {
  return `[${entries.map(({ item }) => item)}]`
}

async function read({ log }: Store, after: number, last: number): Promise<string> {
  const { epochs } = await log.head()
  return String(await log.read(after, last, epochs.owner(last)))
}

async function segmentsIn({ sql }: Store): Promise<number[]> {
  return (await sql.select('SELECT last FROM segments ORDER BY last')).map(({ last }) => Number(last))
}

/** A store whose batches end before, on, and far behind the ends of segments. */
async function openFilled(t: Test, engine: Engine) {
  const url = await engine.createDatabase(t)
  const store = await openLog(t, url)
  const all = entries(1, plants)
  const ends = [0, segmentPlants - 1, segmentPlants, plants]
  for (const [n, end] of ends.slice(1).entries()) await store.log.append(all.slice(ends[n], end))
  return { url, store, all }
}

for (const engine of engines) {
  test(`${engine.name}: a segment is kept once its last plant is there`, async (t) => {
    const { store, all } = await openFilled(t, engine)
    t.strictSame(await segmentsIn(store), [segmentPlants, 2 * segmentPlants])
    t.equal(await read(store, 0, 2 * segmentPlants), arrayOf(all.slice(0, 2 * segmentPlants)))
    await store.log.append(entries(plants + 1, 2 * segmentPlants))
    t.equal((await segmentsIn(store)).length, 4, 'several in one batch')
  })

  test(`${engine.name}: lists come from segments where they are, and from the plants where not`, async (t) => {
    const { url, store, all } = await openFilled(t, engine)
    const app = await startApp(t, url, { store })
    const list = async () => {
      // Nothing of it is cached: each list ends elsewhere.
      await store.log.append(all.slice(-1))
      return (await request(`${app.url}/plants`)).text
    }
    const whole = await list()
    t.ok(whole === arrayOf([...all, ...all.slice(-1)]), 'to the byte')
    const marked = '{"name":"of a segment","tag":""}'
    await store.sql.execute(`UPDATE segments SET items = $1 WHERE last = ${2 * segmentPlants}`, [marked])
    t.match(await list(), `,${marked},{"name":"plant ${2 * segmentPlants + 1} `)
    const { epochs } = await store.log.head()
    await t.rejects(async () => store.log.read(0, segmentPlants, 'another'), unavailable('unread'))
    t.equal(String(await store.log.read(0, 1, epochs.owner(1))), arrayOf(all.slice(0, 1)))
    await store.sql.execute(`DELETE FROM segments WHERE last = ${2 * segmentPlants}`)
    t.ok((await list()).startsWith(whole.slice(0, -1)), 'no list needs all of them')
  })

  test(`${engine.name}: plants that are large take no segment, and no more room`, async (t) => {
    const store = await openLog(t, await engine.createDatabase(t))
    const large = entries(1, segmentPlants, segmentBytes / segmentPlants)
    await store.log.append(large)
    t.strictSame(await segmentsIn(store), [])
    t.ok((await read(store, 0, segmentPlants)) === arrayOf(large))
  })

  test(`${engine.name}: verify finds a segment that differs from its plants, and adds those that are missing`, async (t) => {
    const { url, store } = await openFilled(t, engine)
    await store.sql.execute(`DELETE FROM segments WHERE last = ${segmentPlants}`)
    t.match(await verifyStore(url), { faultCount: 0 }, 'a missing one is no fault')
    const { ended, output } = spawnCli(t, ['verify', url, '--repair'])
    t.match(await ended, { code: 0 })
    t.match(output().stdout, '\nsegments that were missing and are there now: 1\nno faults\n')
    t.match(await store.upkeep?.repair(segmentPlants), { repaired: 0, segments: 0 })
    const stopped = store.upkeep?.repair(segmentPlants, AbortSignal.abort(new Error('enough')))
    await t.rejects(Promise.resolve(stopped), { message: 'enough' })
    await store.sql.execute(
      `UPDATE segments SET items = replace(items, 'plant 7 ', 'plant 8 ') WHERE last = ${segmentPlants}`,
    )
    const { faults } = await verifyStore(url)
    t.strictSame(faults.map(describeFault), [
      `plant ${segmentPlants} ends a segment that differs from its plants`,
    ])
  })
}
