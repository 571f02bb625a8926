// A field that is added to schemas/plant.ts works everywhere: in commands, the service, the client and the documents.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { PlantStore, type Plant as Shown } from '../../client/src/index.ts'
import { joinWords, type NewPlant, Plant as ShownPlant } from '../../schemas/plant.ts'
import { writeInput } from '../cli/imports.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { preload } from '../support/processes.ts'
import { startService, token } from '../support/service.ts'

/** A field of each type, as in schemas/plant.ts. The text may be longer than a name and a tag together. */
const added = {
  note: 'Type.Optional({ ...tag, maxLength: 20_000 })',
  height: 'Type.Optional(Type.Number())',
  rings: 'Type.Optional(Type.Integer({ format: "int32", minimum: 0 }))',
  evergreen: 'Type.Optional(Type.Boolean())',
}
const fields = [...Object.keys(ShownPlant.properties), ...Object.keys(added)]
const columns = [...fields, 'id']
const or = joinWords(fields, 'or')

/** Adds the fields in all processes that tests start. */
process.env.TEST_NODE_OPTIONS = preload(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith('/schemas/plant.ts')) return loaded
      const more = ${JSON.stringify(Object.entries(added).map(([name, type]) => `${name}: ${type}`))}
      const source = String(loaded.source).replace(/(const returned = {.*) }/, (_, start) => start + ', ' + more + ' }')
      return { ...loaded, source }
    },
  })`).NODE_OPTIONS

type Plant = NewPlant & { note?: string; height?: number; rings?: number; evergreen?: boolean }

const plants: Plant[] = [
  { name: 'Fern', tag: 'a', note: 'dry, "shade"', height: 0.25, evergreen: true },
  { name: 'Moss', tag: '', height: -1e-7 },
  { name: 'Oak', tag: 'b', note: 'old', height: 30, rings: 0, evergreen: false, id: 7 },
  { name: 'Yew', tag: '', id: 8 },
]
/** Makes a CSV file with these columns. */
const table = (all: object[], names: string[]) => {
  const cells = all.map((one) => names.map((name) => Object(one)[name] ?? ''))
  const quote = (cell: unknown) => (/[",]/.test(`${cell}`) ? `"${`${cell}`.replaceAll('"', '""')}"` : cell)
  return [names, ...cells].map((row) => `${row.map(quote)}\n`).join('')
}
const lines = (all: object[]) => all.map((one) => `${JSON.stringify(one)}\n`).join('')

/** Makes functions that run a command, and an import, with the added fields on a new database. */
async function makeRunner(t: Test) {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL })
  const load = (input: string, ...flags: string[]) => run('import', writeInput(t, input), ...flags)
  return { DATABASE_URL, run, load }
}

test('import and export keep added fields in each format, and verify finds no faults', async (t) => {
  const inputs = {
    ndjson: lines(plants),
    json: JSON.stringify(plants, null, 1),
    csv: table(plants, columns.toReversed()),
    spreadsheet: table(plants, columns).replaceAll('true', 'TRUE'),
  }
  for (const [format, input] of Object.entries(inputs)) {
    const { run, load } = await makeRunner(t)
    t.match(await load(input), { code: 0, stdout: /^4 added/ }, format)
    t.equal((await run('export', '--quiet')).stdout, lines(plants))
    t.same(JSON.parse((await run('export', '--quiet', '--format', 'json')).stdout), plants)
    t.equal((await run('export', '--quiet', '--format', 'csv')).stdout, table(plants, columns))
    const bare = await run('export', '--quiet', '--no-id', '--format', 'csv', '--after', '2')
    t.equal(bare.stdout, table(plants.slice(2), fields))
    t.match(await run('verify'), { code: 0, stdout: /no faults/ })
  }
})

test('import maps, trims and checks added fields, and rejects contain them', async (t) => {
  const { run, load } = await makeRunner(t)
  const mapped = await load('name,tag,remark\na,,\u00a0dry \n', '--map', 'note=remark', '--trim')
  t.match(mapped, { code: 0, stdout: /^1 added/ })
  t.equal((await run('export', '--quiet')).stdout, '{"name":"a","tag":"","note":"dry"}\n')

  const long = { name: 'b', tag: '', note: '🌴'.repeat(20_000) }
  const escaped = JSON.stringify(long).replaceAll('🌴', '\\ud83c\\udf34')
  t.match(await load(escaped), { code: 0, stdout: /^1 added/ }, 'a line of 240 KB')
  t.equal((await run('export', '--quiet', '--after', '1')).stdout, lines([long]))

  const rejects = join(createDirectory(t), 'rejects')
  const wrong = [
    { name: 'c', tag: '', note: 7 },
    { name: 'd', tag: '', note: 'x', id: 1 },
  ]
  const taken = { ...wrong[1], note: 'y' }
  const refused = await load(lines([...wrong, taken]), '--skip-invalid', '--rejects', rejects)
  t.match(refused, { code: 1, stdout: /^1 added, 0 replayed, 1 conflicting, 1 rejected/ })
  t.match(refused.stderr, /line 1: note must be a string\n/)
  t.match(refused.stderr, `line 3: a plant with this id already exists with a different ${or}\n`)
  t.equal(readFileSync(rejects, 'utf8'), lines([...wrong.slice(0, 1), taken]))

  const cells = 'name,tag,height,rings,evergreen\ne,,1.50m,1e3,yes\nf,,"1,5",7.5,1\n'
  const ofCells = await load(cells, '--dry-run')
  const said = /: height must be a number; rings must be an integer; evergreen must be a boolean/g
  t.match([ofCells.code, ofCells.stderr.match(said)?.length], [1, 2])
  const mistyped = { name: 'g', tag: '', height: '1', rings: 2 ** 31, evergreen: 0 }
  const reasons = /height must be a number; rings .*int32.*; evergreen must be a boolean\n/
  t.match(await load(lines([mistyped]), '--dry-run'), { code: 1, stderr: reasons })
})

test('verify finds an added field with a wrong type', async (t) => {
  const { DATABASE_URL, run, load } = await makeRunner(t)
  await load(lines(plants))
  const script = `
    import { DatabaseSync } from 'node:sqlite'
    import { crc32 } from 'node:zlib'
    const db = new DatabaseSync(new URL(process.env.DATABASE_URL))
    const item = '{"name":"a","tag":"","note":7}'
    const mark = 'AAAAAAAAAAA'
    const checksum = crc32(['5', '', mark, item].join('\\t'))
    db.prepare('INSERT INTO plants (position, item, mark, checksum) VALUES (5, ?, ?, ?)').run(item, mark, checksum)`
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: { DATABASE_URL } })
  t.match(await run('verify'), { code: 1, stdout: /plant 5 is not valid: .*note must be (a )?string/ })
})

test('client and service handle added fields; the client refuses a response without them', async (t) => {
  const { url } = await startService(t, { DATABASE_URL: await sqlite.createDatabase(t) })
  const store = new PlantStore({ baseUrl: url, token })
  const [plant] = plants as [Plant]
  t.same(await store.add(plant), plant)
  t.same((await store.list()).plants, [plant])
  const fetch = async () => Response.json({ name: plant.name, tag: plant.tag } satisfies Shown)
  const forgetful = new PlantStore({ baseUrl: url, token, fetch, retry: { attempts: 1 } })
  await t.rejects(forgetful.add(plant), { cause: { message: 'The response is not from the Plant Store' } })
})

test('the help and the contract contain added fields', async (t) => {
  const { run } = await makeRunner(t)
  const help = (await run('import', '--help')).stdout.replace(/\s+/g, ' ')
  const optional = [...Object.keys(added), 'id'].map((name) => `${name} (optional)`)
  t.match(help, `${joinWords(optional, 'and')}, as in`)
  const { stdout } = await run('openapi')
  for (const name of Object.keys(added))
    t.equal(stdout.match(new RegExp(`^ +${name}:$`, 'gm'))?.length, 2, 'in NewPlant and Plant')
  t.match(stdout.replace(/\s+/g, ' '), `a different ${or}`)
})
