// verify: reports everything that the service did not write, and changes nothing.
import { readFileSync, statSync, truncateSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { checksumOf } from '../../src/store/engine.ts'
import { startRelay } from '../store/relay.ts'
import { runCommand } from '../support/commands.ts'
import { fill, sumLog, verify } from '../support/copies.ts'
import { type Engine, engines, findEngine, sqlite, testPostgres } from '../support/engines.ts'
import { open, openStore } from '../support/stores.ts'
import { findPage, flipBit, overwritePage, tamper } from './damage.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const plants = 60
/** Enough plants for several pages. */
const many = 3000
const malformed = 'database disk image is malformed'

/** A closed store, so that its file contains everything. Its last plant has the id 77. */
async function make(t: Test, engine: Engine, count = plants): Promise<string> {
  const url = await engine.createDatabase(t)
  const store = await openStore(url)
  await fill(store, count)
  await store.log.append([{ item: '{"name":"the last","tag":"of all"}', id: 77 }])
  await store.close()
  return url
}

async function findFaults(url: string): Promise<string[]> {
  const { code, faults, faultCount } = await verify(url)
  if (code !== 1 || (faultCount <= 10 && faults.length !== faultCount))
    throw new Error(`code ${code}, ${faultCount} faults`)
  return faults
}

/** SQL that stores another plant in a row, with the checksum that it should have. */
async function rewrite(url: string, changes: Record<number, { item?: string; id?: number; mark?: string }>) {
  const store = await openStore(url, { mode: 'read' })
  const rows = await store.plants(0, Number.MAX_SAFE_INTEGER, many)
  await store.close()
  const statements = Object.entries(changes).map(([position, change]) => {
    const row = { ...rows[Number(position) - 1], ...change } as (typeof rows)[0]
    const { item, id, mark } = row
    return `UPDATE plants SET item = '${item}', id = ${id}, mark = '${mark}', checksum = ${checksumOf(row)} WHERE position = ${position};`
  })
  await tamper(url, statements.join('\n'))
}

for (const engine of engines) {
  test(`${engine.name}: verify finds no faults in a store in use, and reports its checksum`, async (t) => {
    const url = await engine.createDatabase(t)
    const store = await open(t, url)
    t.match(await verify(url), { code: 0, plants: 0, faultCount: 0 }, 'an empty one')
    await fill(store, many)
    const checksum = await sumLog(store)
    const { name } = engine
    const good = { engine: name, plants: many, checksum, faultCount: 0, faults: [] }
    t.strictSame(await verify(url), { code: 0, ...good })
    const stdout = `${name}: 3,000 plants, SHA-256 ${checksum}\nno faults\n`
    t.strictSame(await runCommand(['verify'], { DATABASE_URL: url }), { code: 0, stdout, stderr: '' })
  })

  const damages: [title: string, statements: string, faults: (string | RegExp)[]][] = [
    [
      'gaps',
      'DELETE FROM plants WHERE position = 1 OR position BETWEEN 20 AND 22',
      ['plant 1 is missing', 'plants 20 to 22 are missing'],
    ],
    [
      'a plant far beyond the others',
      `INSERT INTO plants (position, item, mark, checksum) VALUES (9007199254740991, '{}', '', 1)`,
      ['plants 62 to 9007199254740990 are missing', 'plant 9007199254740991 does not match its checksum'],
    ],
    [
      'a plant before the first',
      `INSERT INTO plants (position, item, mark, checksum) VALUES (0, '{}', '', 1)`,
      ['is before the first position'],
    ],
    ...['item = \'{"name":"b","tag":""}\'', 'id = 8', "mark = 'another'", 'checksum = checksum + 1'].map(
      (change): [string, string, string[]] => [
        `an altered row: ${change}`,
        `UPDATE plants SET ${change} WHERE position = 9`,
        ['plant 9 does not match its checksum'],
      ],
    ),
    [
      'more than ten faults',
      `UPDATE plants SET checksum = 1 WHERE position > 40`,
      Array.from({ length: 10 }, (_, n) => `plant ${41 + n} does not match its checksum`),
    ],
    [
      'malformed tokens',
      `UPDATE tokens SET scopes = 'plants:read plants:all', hash = upper(hash)`,
      [/^token \w{8} has a hash that is not a SHA-256$/, /^token \w{8} has unknown scopes$/],
    ],
    ['a store without its id', `UPDATE meta SET value = 'x' WHERE key = 'store'`, ['the store has no id']],
  ]
  // Checks of rows do not depend on the engine.
  for (const [title, statements, faults] of engine === engines.at(-1) ? damages : [])
    test(`${engine.name}: verify reports ${title}`, async (t) => {
      const url = await make(t, engine)
      await tamper(url, statements)
      const found = await findFaults(url)
      t.match(found, faults)
      t.equal(found.length, faults.length)
    })

  test(`${engine.name}: verify reports rows that no service writes, even with a correct checksum`, async (t) => {
    const url = await make(t, engine)
    await rewrite(url, {
      3: { item: 'x' },
      4: { item: 'null' },
      5: { item: '{"name":" ","tag":""}' },
      6: { item: '{"name":"a"}' },
      7: { item: '{"name":"a","tag":"","id":5}' },
      8: { item: '{ "name":"a","tag":""}' },
      9: { item: '{"tag":"","name":"a"}' },
      10: { id: -1 },
      11: { mark: '' },
    })
    t.match(await findFaults(url), [
      'plant 3 is not JSON',
      'plant 4 is not valid: must be an object',
      'plant 5 is not valid: name must not contain control characters',
      'plant 6 is not valid: tag is required',
      'plant 7 is not in the stored format',
      'plant 8 is not in the stored format',
      'plant 9 is not in the stored format',
      'plant 10 is not valid: id must be at least 0',
      'plant 11 has no mark',
    ])
  })

  test(`${engine.name}: verify reports a duplicate id, if the index is missing`, async (t) => {
    const url = await make(t, engine)
    await tamper(url, 'DROP INDEX plants_id')
    await rewrite(url, { 3: { id: 77 } })
    t.match(await findFaults(url), [/^plants_id /, 'plant 61 has the id 77, which another plant also has'])
  })
}

test('PostgreSQL: verify reports a duplicate position, if the index is missing', { skip }, async (t) => {
  const url = await make(t, postgres)
  await tamper(
    url,
    `ALTER TABLE plants DROP CONSTRAINT plants_pkey; UPDATE plants SET position = 8 WHERE position = 7;
      ALTER TABLE plants DISABLE TRIGGER plants_no_change; DELETE FROM head;
      UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'plants_id'::regclass`,
  )
  t.match(
    (await findFaults(url)).join('\n'),
    /plants_pkey[\s\S]*plants_id [\s\S]*plants_no_change [\s\S]*head has 0 rows[\s\S]*plant 7 is missing[\s\S]*plant 8 exists twice/,
  )
})

test('verify reports an id in the index without its plant', async (t) => {
  const url = await make(t, sqlite)
  const db = new DatabaseSync(new URL(url))
  const row = db.prepare("SELECT rootpage, sql FROM sqlite_schema WHERE name = 'plants_id'").get()
  db.close()
  await tamper(url, "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'plants_id'")
  await tamper(url, 'DELETE FROM plants WHERE position = 61')
  const index = `('index', 'plants_id', 'plants', ${row?.rootpage}, '${row?.sql}')`
  await tamper(url, `PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ${index}`)
  t.strictSame(await findFaults(url), ['plants_id has entries without plants'])
})

testPostgres('verify does not report a database that becomes unavailable as damaged', async (t, direct) => {
  await fill(await open(t, direct), plants)
  for (const query of ['FROM tokens', 'mark, checksum FROM plants']) {
    const { relay, url } = await startRelay(t, direct)
    void relay.breakAt(query, 'before').then(() => relay.close())
    const stderr = /^plant-store: the database is unavailable: [^\n]+\n$/
    t.match(await runCommand(['verify'], { DATABASE_URL: url }), { code: 1, stdout: '', stderr }, query)
  }
})

test('verify reports a flipped bit in the file', async (t) => {
  const url = await make(t, sqlite)
  flipBit(fileURLToPath(url), 'the last')
  t.strictSame(await findFaults(url), ['plant 61 does not match its checksum'])
})

test('verify refuses a truncated file, and one that is not a store', async (t) => {
  const url = await make(t, sqlite, many)
  const path = fileURLToPath(url)
  truncateSync(path, statSync(path).size - 4096 * 20)
  const cases: [url: string, reason: RegExp][] = [
    [url, /^plant-store: cannot open .*: database disk image is malformed\n$/],
    ['file:.', /^plant-store: the database must be a file/],
    ['file:no/such.db', new RegExp(`^plant-store: no database file at ${resolve('no/such.db')}`)],
  ]
  for (const [from, stderr] of cases)
    t.match(await runCommand(['verify', '--database-url', from]), { code: 1, stdout: '', stderr }, from)
})

test('verify reports the positions on an overwritten page, and checks all other plants', async (t) => {
  const url = await make(t, sqlite, many)
  const path = fileURLToPath(url)
  await tamper(
    url,
    'UPDATE plants SET checksum = 1 WHERE position IN (7, 2900); DELETE FROM plants WHERE position = 3',
  )
  overwritePage(path, findPage(path, ' 1500"'))
  const before = readFileSync(path)
  const { faults, checksum, plants } = await verify(url)
  const [, from, to, reason] = /^plants (\d+) to (\d+) are unreadable: (.*)$/.exec(faults[0]) ?? []
  const [first, last] = [Number(from), Number(to)]
  t.equal(reason, malformed)
  t.ok(first <= 1501 && last >= 1501 && last - first < 200, `${first} to ${last}`)
  t.equal(plants, many - (last - first + 1))
  t.equal(checksum, null)
  const others = [7, 2900].map((position) => `plant ${position} does not match its checksum`)
  const found = faults.filter((fault: string) => fault.startsWith('plant '))
  t.strictSame(found, ['plant 3 is missing', ...others])
  const { stdout } = await runCommand(['verify'], { DATABASE_URL: url })
  t.match(stdout, `\nplants ${first} to ${last} are unreadable: ${malformed}\n`)
  t.strictSame(readFileSync(path), before, 'verify changes nothing')
})

test('verify reports plants whose text is unreadable, and checks the one between them', async (t) => {
  const url = await make(t, sqlite)
  // Long enough for SQLite to store the end in separate pages.
  const long = (end: string) => `{"name":"${'x'.repeat(10_000)} ${end}","tag":""}`
  const items = [long('the end'), '{"name":"a","tag":""}', long('another end')]
  const rows = items.map((item, index) => `(${62 + index}, '${item}', '', 1)`)
  await tamper(url, `INSERT INTO plants (position, item, mark, checksum) VALUES ${rows}`)
  const path = fileURLToPath(url)
  for (const end of ['the end', 'another end']) overwritePage(path, findPage(path, end) - 1)
  const { stdout } = await runCommand(['verify'], { DATABASE_URL: url })
  t.match(stdout, `\nplant 62 is unreadable: ${malformed}\nplant 64 is unreadable: ${malformed}\n`)
  t.match(stdout, 'plant 63 does not match its checksum')
})

test('verify reports an unreadable end of the log, and checks the plants before it', async (t) => {
  const url = await make(t, sqlite, many)
  overwritePage(fileURLToPath(url), findPage(fileURLToPath(url), 'the last'))
  const { plants, faults } = await verify(url)
  t.ok(plants > 2900, `${plants} plants`)
  t.match(faults, [
    /^plants 29\d\d to 4000 are unreadable: /,
    /^the end of the log cannot be read: /,
    /^the file /,
  ])
})
