// A field more in schemas/plant.ts is a field more everywhere: commands, service, client and documents lose nothing of it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { PlantStore, type Plant as Shown } from '../../client/src/index.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { writeInput } from '../support/imports.ts'
import { preload } from '../support/preload.ts'
import { startService, token } from '../support/service.ts'

/**
 * In the processes that tests start plants have an optional `note`, too, longer than what a line could hold that has a
 * name and a tag alone.
 */
process.env.TEST_NODE_OPTIONS = preload(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith('/schemas/plant.ts')) return loaded
      const field = '{ name, tag, note: Type.Optional({ ...tag, maxLength: 20_000 })'
      return { ...loaded, source: String(loaded.source).replaceAll('{ name, tag', field) }
    },
  })`).NODE_OPTIONS

type Plant = { name: string; tag: string; note?: string; id?: number }

const plants: Plant[] = [
  { name: 'Fern', tag: 'a', note: 'dry, "shade"' },
  { name: 'Moss', tag: '' },
  { name: 'Oak', tag: 'b', note: 'old', id: 7 },
  { name: 'Yew', tag: '', id: 8 },
]
const lines = (all: object[]) => all.map((one) => `${JSON.stringify(one)}\n`).join('')

/** Runs a command of the wider program. */
async function makeRunner(t: Test) {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL })
  return { DATABASE_URL, run }
}

test('plants leave the store in each format as they came, and verify', async (t) => {
  const inputs = {
    ndjson: lines(plants),
    json: JSON.stringify(plants, null, 1),
    csv: 'id,note,tag,name\n,"dry, ""shade""",a,Fern\n,,,Moss\n7,old,b,Oak\n8,,,Yew\n',
  }
  for (const [format, input] of Object.entries(inputs)) {
    const { run } = await makeRunner(t)
    t.match(await run('import', writeInput(t, input)), { code: 0, stdout: /^4 added/ }, format)
    t.equal((await run('export', '--quiet')).stdout, lines(plants))
    t.same(JSON.parse((await run('export', '--quiet', '--format', 'json')).stdout), plants)
    t.equal(
      (await run('export', '--quiet', '--format', 'csv')).stdout,
      'name,tag,note,id\nFern,a,"dry, ""shade""",\nMoss,,,\nOak,b,old,7\nYew,,,8\n',
    )
    const bare = await run('export', '--quiet', '--no-id', '--format', 'csv', '--after', '2')
    t.equal(bare.stdout, 'name,tag,note\nOak,b,old\nYew,,\n')
    t.match(await run('verify'), { code: 0, stdout: /no faults/ })
  }
})

test('a field can be mapped, trimmed, too long, wrong, or in conflict, and a reject has it', async (t) => {
  const { run } = await makeRunner(t)
  const mapped = await run(
    'import',
    writeInput(t, 'name,tag,remark\na,,\u00a0dry \n'),
    '--map',
    'note=remark',
    '--trim',
  )
  t.match(mapped, { code: 0, stdout: /^1 added/ })
  t.equal((await run('export', '--quiet')).stdout, '{"name":"a","tag":"","note":"dry"}\n')

  const long = { name: 'b', tag: '', note: '🌴'.repeat(20_000) }
  const escaped = JSON.stringify(long).replaceAll('🌴', '\\ud83c\\udf34')
  t.match(await run('import', writeInput(t, escaped)), { code: 0, stdout: /^1 added/ }, 'a line of 240 KB')
  t.equal((await run('export', '--quiet', '--after', '1')).stdout, lines([long]))

  const rejects = join(createDirectory(t), 'rejects')
  const wrong = [
    { name: 'c', tag: '', note: 7 },
    { name: 'd', tag: '', note: 'x', id: 1 },
  ]
  const taken = { ...wrong[1], note: 'y' }
  const refused = await run('import', writeInput(t, lines([...wrong, taken])), '--rejects', rejects)
  t.match(refused, { code: 1, stdout: /^1 added, 0 replayed, 1 conflicting, 1 rejected/ })
  t.match(refused.stderr, /line 1: note must be a string\n/)
  t.match(
    refused.stderr,
    /line 3: id is the id of a plant that already exists with a different name, tag or note\n/,
  )
  const kept = readFileSync(rejects, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.match(kept, [{ line: 1, errors: [{ code: 'type', pointer: '/note' }] }, { line: 3 }])
  t.match(kept[0].text, '"note":7')
})

test('a field that is wrong in the store is a fault', async (t) => {
  const { DATABASE_URL, run } = await makeRunner(t)
  await run('import', writeInput(t, lines(plants)))
  const script = `
    import { DatabaseSync } from 'node:sqlite'
    import { crc32 } from 'node:zlib'
    const db = new DatabaseSync(new URL(process.env.DATABASE_URL))
    const item = '{"name":"a","tag":"","note":7}'
    db.prepare('INSERT INTO plants (position, item, checksum) VALUES (5, ?, ?)').run(item, crc32('5\\t\\t' + item))`
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: { DATABASE_URL } })
  t.match(await run('verify'), { code: 1, stdout: /plant 5 is not valid: note must be a string\n/ })
})

test('the client and the service pass it on, and an answer without it is not from the service', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const { url } = await startService(t, { DATABASE_URL })
  const store = new PlantStore({ baseUrl: url, token })
  const [plant] = plants as [Plant]
  t.same(await store.add(plant), plant)
  t.same((await store.list()).plants, [plant])
  const fetch = async () => Response.json({ name: plant.name, tag: plant.tag } satisfies Shown)
  const forgetful = new PlantStore({ baseUrl: url, token, fetch, retry: { attempts: 1 } })
  await t.rejects(forgetful.add(plant), { cause: { message: 'This success is not from the Plant Store' } })
})

test('help and contract name it', async (t) => {
  const { run } = await makeRunner(t)
  const help = (await run('import', '--help')).stdout.replace(/\s+/g, ' ')
  t.match(help, 'take name, tag, note or id from this column')
  t.match(help, 'Members and columns are name, tag, note (optional) and id (optional), as in POST /plants')
  const { stdout } = await run('openapi')
  t.equal(stdout.match(/^ +note:$/gm)?.length, 2, 'in NewPlant and Plant')
  t.match(stdout, 'a different name, tag or note')
})
