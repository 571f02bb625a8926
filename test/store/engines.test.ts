// An engine is a folder and a row: a third one, without SQL, is served with tokens, imported into, exported, copied, verified
// and shown by `status` with nothing changed elsewhere.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { engineOf } from '../../src/store/engines.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { request, spawnCli, startService } from '../support/service.ts'

const plants = [
  { name: 'Alder', tag: 'Alnus' },
  { name: 'Beech', tag: '' },
]
const NODE_OPTIONS = `--import=${import.meta.resolve('./ndjson-engine.ts')}`

function makeUrl(t: Test): string {
  return `ndjson:${join(createDirectory(t), 'plants.ndjson')}`
}

async function run(t: Test, args: string[], DATABASE_URL: string) {
  const { ended, output } = spawnCli(t, args, { DATABASE_URL, NODE_OPTIONS })
  return { ...(await ended), ...output() }
}

/** A store with the two plants, imported. */
async function makeStore(t: Test): Promise<{ url: string; input: string }> {
  const url = makeUrl(t)
  const input = join(createDirectory(t), 'input.ndjson')
  writeFileSync(input, plants.map((plant) => `${JSON.stringify(plant)}\n`).join(''))
  const { code, stderr } = await run(t, ['import', input], url)
  t.equal(code, 0, stderr)
  return { url, input }
}

test('a file of NDJSON is served, and takes plants, with a retry by their id', async (t) => {
  const { url } = await startService(t, { DATABASE_URL: makeUrl(t), NODE_OPTIONS })
  t.same((await request(`${url}/plants`)).json(), [])
  const add = async (plant: object) => (await request(`${url}/plants`, { body: plant })).status
  for (const plant of plants) t.equal(await add(plant), 200)
  const cedar = { name: 'Cedar', tag: '', id: 7 }
  t.same([await add(cedar), await add(cedar), await add({ ...cedar, tag: 'Cedrus' })], [200, 200, 409])
  t.same((await request(`${url}/plants`)).json(), [...plants, { name: 'Cedar', tag: '' }])
  t.same((await request(`${url}/plants?limit=1`)).json(), plants.slice(0, 1))
})

test('it keeps tokens, which are made, rotated and revoked beside the service', async (t) => {
  const DATABASE_URL = makeUrl(t)
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
    stderr: /named "gardener" already exists/,
  })
  const rotated = await run(t, ['token', 'rotate', 'gardener'], DATABASE_URL)
  t.equal((await list(rotated.stdout.trim())).status, 200)
  t.match(await run(t, ['token', 'revoke', rotated.stdout.trim()], DATABASE_URL), { code: 0 })
  while ((await list(rotated.stdout.trim())).status !== 401);
  t.equal((await list(token)).status, 200, 'the other token stays valid')
})

test('it is exported, verified and shown by status', async (t) => {
  const { url } = await makeStore(t)
  const exported = await run(t, ['export', '-'], url)
  t.match(exported, { code: 0, stdout: plants.map((plant) => `${JSON.stringify(plant)}\n`).join('') })
  const verified = await run(t, ['verify', '--json'], url)
  t.match(JSON.parse(verified.stdout), { engine: 'NDJSON', plants: 2, faultCount: 0 }, verified.stderr)
  const status = await run(t, ['status', '--json'], url)
  t.match(JSON.parse(status.stdout), { engine: 'NDJSON', head: 2 }, status.stderr)
  t.match(await run(t, ['status'], 'ndjson:nowhere'), { code: 1, stderr: /there is no file nowhere/ })
})

test('it knows what was imported into it', async (t) => {
  const { url, input } = await makeStore(t)
  t.match(await run(t, ['import', input], url), { code: 0 }, 'with nothing new')
  writeFileSync(input, '{"name":"Cedar","tag":""}\n', { flag: 'a' })
  t.match(await run(t, ['import', input], url), { code: 0 })
  t.equal(JSON.parse((await run(t, ['status', '--json'], url)).stdout).head, 3)
  t.match(await run(t, ['import', '--dry-run', '--again', input], url), { code: 0 })
})

test('it is copied elsewhere, and what it leaves out is refused', async (t) => {
  const { url } = await makeStore(t)
  const target = await sqlite.createDatabase(t)
  const copied = await run(t, ['copy', '--from', url, '--to', target, '--json'], '')
  t.match(JSON.parse(copied.stdout), { plants: 2, added: 2 }, copied.stderr)
  t.match(await run(t, ['copy', '--from', target, '--to', makeUrl(t)], ''), {
    code: 1,
    stderr: /--to is of an engine that nothing can be copied to/,
  })
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
