// The power fails after a restart: what was acknowledged is on the disk, also what a new process found in the page cache
// alone, and pages that a failed fsync left there as clean. Needs Linux and a C compiler.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { ask, findAdmin } from '../support/admin.ts'
import { countRounds } from '../support/full.ts'
import { Disk, skip } from '../support/power.ts'
import { makeRandom, tellSeed } from '../support/seed.ts'
import { request, type Service, spawnCli, startService } from '../support/service.ts'
import { listNames, openFile } from '../support/stores.ts'
import { until } from '../support/until.ts'

const cuts = countRounds(20, 4)

/** Adds a plant whose name and id are the same number; resolves to the status of the answer. */
async function add({ url }: Service, id: number): Promise<number> {
  return (await request(`${url}/plants`, { body: { name: `${id}`, tag: '', id } })).status
}

async function list({ url }: Service): Promise<string[]> {
  return ((await request(`${url}/plants`)).json() as Plant[]).map(({ name }) => name)
}

async function kill(
  { child, ended }: Pick<Service, 'child' | 'ended'>,
  by: 'SIGKILL' | 'SIGTERM',
): Promise<void> {
  child.kill(by)
  await ended
}

/** The names of the plants on a disk whose power was cut; that file has no other fault either. */
async function survivors(t: Test, path: string): Promise<string[]> {
  const { store } = await openFile(t, path)
  t.match(await store.sql.select('PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
  const names = await listNames(store)
  await store.close()
  return names
}

/** A service whose last addition has reached the page cache alone: its sync failed. */
async function leaveUnsynced(t: Test, by: 'SIGKILL' | 'SIGTERM', before = 1): Promise<Disk> {
  const disk = new Disk(t)
  const service = await startService(t, disk.env())
  for (let id = 1; id <= before; id++) t.equal(await add(service, id), 200)
  disk.fault('fail', '-wal')
  t.equal(await add(service, before + 1), 503)
  await kill(service, by)
  disk.mend()
  t.strictSame(await survivors(t, disk.cutPower()), numbers(before))
  return disk
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n + 1}`)

test('a kill during the sync of a plant, and a retry that is answered 200 by the next process', {
  skip,
}, async (t) => {
  const disk = new Disk(t)
  const first = await startService(t, disk.env())
  t.equal(await add(first, 1), 200)
  disk.fault('hang', '-wal')
  const unanswered = add(first, 2).catch(() => 0)
  await disk.hung()
  await kill(first, 'SIGKILL')
  t.equal(await unanswered, 0)
  disk.mend()
  const second = await startService(t, disk.env())
  t.strictSame(await list(second), ['1', '2'])
  t.equal(await add(second, 2), 200)
  await kill(second, 'SIGKILL')
  t.strictSame(await survivors(t, disk.cutPower()), ['1', '2'])
})

for (const by of ['SIGKILL', 'SIGTERM'] as const)
  test(`a sync that failed, then ${by}: what the next process lists and adds is on the disk`, {
    skip,
  }, async (t) => {
    const disk = await leaveUnsynced(t, by)
    const second = await startService(t, disk.env())
    t.strictSame(await list(second), ['1', '2'])
    t.equal(await add(second, 2), 200)
    t.equal(await add(second, 3), 200)
    await kill(second, 'SIGKILL')
    t.strictSame(await survivors(t, disk.cutPower()), ['1', '2', '3'])
  })

/** Another program, which recovers the log first and then reads on, so that no checkpoint can finish. */
const neighbour = `
  const db = new (require('node:sqlite').DatabaseSync)(process.argv[1], { readOnly: true })
  db.exec('BEGIN; SELECT count(*) FROM plants')
  console.log('reading')
  process.stdin.resume()`

test('a sync that failed, and a program that reads on: no checkpoint can finish, and all is on the disk', {
  skip,
}, async (t) => {
  const disk = await leaveUnsynced(t, 'SIGKILL')
  const reader = spawn(process.execPath, ['-e', neighbour, disk.path], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => reader.kill('SIGKILL'))
  await once(reader.stdout, 'data')
  const second = await startService(t, disk.env())
  t.strictSame(await list(second), ['1', '2'])
  t.equal(await add(second, 2), 200)
  t.equal(await add(second, 3), 200)
  await kill(second, 'SIGKILL')
  t.strictSame(await survivors(t, disk.cutPower()), ['1', '2', '3'])
})

test('a disk that fails its syncs while nobody writes is noticed by the first plant, then by each probe', {
  skip,
}, async (t) => {
  const disk = new Disk(t)
  const service = await startService(t, { ...disk.env(), ADMIN_PORT: '0' })
  const admin = await findAdmin(service)
  const isReady = async () => (await ask(`${admin}/readyz`)).status
  t.equal(await add(service, 1), 200)
  disk.fault('fail', '-wal')
  t.equal(await isReady(), 200, 'a probe writes nothing, so that nothing is synced')
  t.equal(await add(service, 2), 503)
  t.equal(await isReady(), 503, 'now the log has to be written again first')
  disk.mend()
  await until(async () => (await isReady()) === 200)
  t.equal(await add(service, 2), 200)
})

for (const args of [
  ['export', '--quiet'],
  ['token', 'create', '--name', 'a'],
])
  test(`a sync that failed, then ${args.join(' ')}: what it found is on the disk`, { skip }, async (t) => {
    const disk = await leaveUnsynced(t, 'SIGKILL')
    const command = spawnCli(t, args, disk.env())
    t.match(await command.ended, { code: 0 })
    t.strictSame(await survivors(t, disk.cutPower()), ['1', '2'])
  })

test(`${cuts} cuts while the next process starts lose nothing that was acknowledged`, { skip }, async (t) => {
  tellSeed(t)
  const random = makeRandom()
  const before = 40
  const disk = await leaveUnsynced(t, 'SIGKILL', before)
  const back = disk.remember()
  const start = async (cutAt?: number) => {
    disk.restart()
    return spawnCli(t, ['token', 'create', '--name', 'a'], disk.env(cutAt)).ended
  }
  t.match(await start(), { code: 0 })
  const { steps } = disk
  for (let cut = 0; cut < cuts; cut++) {
    back()
    const cutAt = 1 + Math.floor(random() * steps)
    t.match(await start(cutAt), { code: 9 })
    const share = random()
    const there = await survivors(
      t,
      disk.cutPower(() => random() < share),
    )
    t.strictSame(there.slice(0, before), numbers(before), `cut at ${cutAt} of ${steps}`)
  }
})
