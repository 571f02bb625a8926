// An engine is a folder and a row: a third one, without SQL, is served with tokens, exported, verified and shown by `status`
// with nothing changed elsewhere.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { engineOf } from '../../src/store/engines.ts'
import { createDirectory } from '../support/engines.ts'
import { request, spawnCli, startService } from '../support/service.ts'

const plants = [
  { name: 'Alder', tag: 'Alnus' },
  { name: 'Beech', tag: '' },
]
const NODE_OPTIONS = `--import=${import.meta.resolve('./ndjson-engine.ts')}`

function makeFile(t: Test): string {
  const path = join(createDirectory(t), 'plants.ndjson')
  writeFileSync(path, plants.map((plant) => `${JSON.stringify(plant)}\n`).join(''))
  return path
}

async function run(t: Test, args: string[], DATABASE_URL: string) {
  const { ended, output } = spawnCli(t, args, { DATABASE_URL, NODE_OPTIONS })
  return { ...(await ended), ...output() }
}

test('a file of NDJSON is served, and takes plants, with a retry by their id', async (t) => {
  const { url } = await startService(t, { DATABASE_URL: `ndjson:${makeFile(t)}`, NODE_OPTIONS })
  t.same((await request(`${url}/plants`)).json(), plants)
  t.same((await request(`${url}/plants?limit=1`)).json(), plants.slice(0, 1))
  const cedar = { name: 'Cedar', tag: '' }
  const add = async (plant: object) => (await request(`${url}/plants`, { body: { ...plant, id: 7 } })).status
  t.same([await add(cedar), await add(cedar), await add({ ...cedar, tag: 'Cedrus' })], [200, 200, 409])
  t.same((await request(`${url}/plants`)).json(), [...plants, cedar])
})

test('it keeps tokens, which are made, rotated and revoked beside the service', async (t) => {
  const DATABASE_URL = `ndjson:${makeFile(t)}`
  const { url, output } = await startService(t, { DATABASE_URL, NODE_OPTIONS, ACCESS_TOKENS: '' })
  const list = (token = '') => request(`${url}/plants`, { headers: { authorization: `Bearer ${token}` } })
  const first = /plant_\w+/.exec(output().stdout)?.[0]
  t.equal((await list(first)).status, 200)
  const made = await run(t, ['token', 'create', '--name', 'gardener'], DATABASE_URL)
  const token = made.stdout.trim()
  const headers = { authorization: `Bearer ${token}` }
  t.equal((await request(`${url}/plants`, { headers, body: { name: 'Cedar', tag: '' } })).status, 200)
  t.match((await list(token)).text, /Cedar/)
  t.match(await run(t, ['token', 'create', '--name', 'gardener'], DATABASE_URL), {
    code: 1,
    stderr: /is named "gardener" already/,
  })
  const rotated = await run(t, ['token', 'rotate', 'gardener'], DATABASE_URL)
  t.equal((await list(rotated.stdout.trim())).status, 200)
  t.match(await run(t, ['token', 'revoke', rotated.stdout.trim()], DATABASE_URL), { code: 0 })
  while ((await list(rotated.stdout.trim())).status !== 401);
  t.equal((await list(token)).status, 200, 'the other token stays valid')
})

test('it is exported, verified and shown by status', async (t) => {
  const path = makeFile(t)
  const url = `ndjson:${path}`
  const exported = await run(t, ['export', '-'], url)
  t.match(exported, { code: 0, stdout: readFileSync(path, 'utf8') })
  const verified = await run(t, ['verify', '--json'], url)
  t.match(JSON.parse(verified.stdout), { engine: 'NDJSON', plants: 2, faultCount: 0 }, verified.stderr)
  const status = await run(t, ['status', '--json'], url)
  t.match(JSON.parse(status.stdout), { engine: 'NDJSON', head: 2, epochs: 1 }, status.stderr)
})

test('an engine whose store threads cannot share is refused with more than one', async (t) => {
  const { ended, output } = spawnCli(t, ['serve'], {
    DATABASE_URL: `ndjson:${makeFile(t)}`,
    NODE_OPTIONS,
    THREADS: '2',
    PORT: '0',
  })
  t.match(await ended, { code: 1 })
  t.match(output().stderr, 'THREADS 2: this database can be used by one thread alone: set THREADS to 1')
})

test('a URL of no engine is refused, with those that there are', async (t) => {
  t.throws(() => engineOf('mysql://a/b'), { message: /an unknown scheme/ })
  const { code, stderr } = await run(t, ['status'], 'mysql://a/b')
  t.equal(code, 1)
  t.match(
    stderr,
    'DATABASE_URL must start with file: (SQLite) or postgres:// (PostgreSQL) or ndjson: (NDJSON)',
  )
})
