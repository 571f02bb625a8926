// verify: it finds whatever is not as the service has written it, and changes nothing.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import pino from 'pino'
import tap, { type Test, test } from 'tap'
import { checkPage } from '../../src/maintenance/verify/check-page.ts'
import { describeFault } from '../../src/maintenance/verify/faults.ts'
import { verifyStore } from '../../src/maintenance/verify/verify-store.ts'
import { openView } from '../../src/store/engines.ts'
import { makeSqlStore } from '../../src/store/sql/sql-store.ts'
import { sqliteDialect } from '../../src/store/sqlite/sqlite-dialect.ts'
import { runCommand } from '../support/commands.ts'
import { fill, open, sumLog } from '../support/copies.ts'
import { findPage, flipBit, overwritePage, tamper, truncate } from '../support/damage.ts'
import {
  createDirectory,
  type Engine,
  engines,
  findEngine,
  sharedServer,
  sqlite,
} from '../support/engines.ts'
import { makeKept } from '../support/kept.ts'
import { eventually } from '../support/logs.ts'
import { spawnCli } from '../support/service.ts'
import { openStore, type Store } from '../support/sql-store.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const plants = 60
/** So many that they are read in several pages. */
const many = 3000

/** By engine and number of plants; they are closed, so that all of them is in the file. */
const originals = new Map<string, Promise<string>>()
let copies = 0

/** A copy of a store that is made once. */
async function make(t: Test, engine: Engine, count = plants): Promise<string> {
  const key = `${engine.name} ${count}`
  const original = originals.get(key) ?? makeOriginal(engine, count)
  originals.set(key, original)
  const from = new URL(await original)
  if (engine === sqlite) {
    const path = join(createDirectory(t), 'plants.db')
    copyFileSync(from, path)
    return `file:${path}`
  }
  const server = await sharedServer()
  const template = from.pathname.slice(1)
  const name = `${template}_${++copies}`
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  return server.url(name)
}

async function makeOriginal(engine: Engine, count: number): Promise<string> {
  const url = await engine.createDatabase(tap)
  const store = await openStore(url, { logger: pino({ level: 'silent' }) })
  await fill(store, count)
  await store.log.append([{ item: '{"name":"the last","tag":"of all"}', id: 77 }])
  await store.close()
  return url
}

async function findFaults(url: string): Promise<string[]> {
  const { faults, faultCount } = await verifyStore(url)
  if (faultCount <= 10 && faults.length !== faultCount) throw new Error(`${faultCount} faults, not all named`)
  return faults.map(describeFault)
}

for (const engine of engines) {
  test(`${engine.name}: a store in use has no faults, and the checksum of its copy`, async (t) => {
    const url = await engine.createDatabase(t)
    const store = await open(t, url)
    t.match(await verifyStore(url), { plants: 0, faultCount: 0 }, 'an empty one')
    await fill(store, many)
    const [checksum, shown] = [await sumLog(store), [] as number[]]
    let adding: Promise<unknown> = Promise.resolve()
    const onProgress = (done: number, total: number) => {
      t.equal(total, many)
      shown.push(done)
      adding = adding.then(() => store.log.append([{ item: '{"name":"late","tag":""}', id: undefined }]))
    }
    t.strictSame(await verifyStore(url, { onProgress }), {
      engine: engine.name,
      schemaVersion: 2,
      plants: many,
      unchecked: 0,
      checksum,
      unread: [],
      head: many,
      faultCount: 0,
      faults: [],
    })
    await adding
    t.equal(shown.at(-1), many)
  })

  test(`${engine.name}: rows of 1.0.0 are checked as far as they can be, and repaired`, async (t) => {
    const { url, items, version } = await makeKept(t, engine.name)
    // It took control characters that are refused now.
    await tamper(url, `UPDATE plants SET item = '{"name":"\u0085","tag":"\u009f"}' WHERE position = 2`)
    const found = { schemaVersion: 1, plants: items.length, unchecked: items.length, faultCount: 0 }
    const { checksum, ...report } = await verifyStore(url)
    t.match(report, found)
    t.equal(await version(), 1, 'nothing is changed')
    const { code, stdout, stderr } = await runCommand(['verify', url, '--repair'])
    t.same({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, `, schema version 2: ${items.length} plants, `)
    t.match(stdout, `${items.length} plants had no checksum and got one\nno faults\n`)
    t.match(await verifyStore(url), { ...found, schemaVersion: 2, unchecked: 0, checksum })
    await tamper(url, `UPDATE plants SET item = replace(item, 'Monstera', 'Monster') WHERE position = 1`)
    t.strictSame(await findFaults(url), ['plant 1 does not match its checksum'])
  })

  const damages: [title: string, statements: string, faults: (string | RegExp)[]][] = [
    ['a gap', 'DELETE FROM plants WHERE position = 7', ['plant 7 is missing']],
    [
      'gaps',
      'DELETE FROM plants WHERE position = 1 OR position BETWEEN 20 AND 22; UPDATE plants SET item = item WHERE position = 2',
      ['plant 1 is missing', 'plants 20 to 22 are missing'],
    ],
    [
      'a plant far off',
      `INSERT INTO plants (position, item) VALUES (9007199254740991, '{"name":"a","tag":""}')`,
      ['plants 62 to 9007199254740990 are missing', 'plant 9007199254740991 has lost its checksum'],
    ],
    [
      'a plant before the first',
      `INSERT INTO plants (position, item) VALUES (0, '{"name":"a","tag":""}')`,
      ['plant 0 is before the first position'],
    ],
    [
      'an altered item',
      `UPDATE plants SET item = '{"name":"b","tag":""}' WHERE position = 9`,
      ['plant 9 does not match its checksum'],
    ],
    ['an altered id', 'UPDATE plants SET id = 8 WHERE position = 9', ['plant 9 does not match its checksum']],
    [
      'an altered checksum',
      'UPDATE plants SET checksum = checksum + 1 WHERE position = 9',
      ['plant 9 does not match its checksum'],
    ],
    [
      'items that are no plants, with no checksum',
      `UPDATE plants SET checksum = NULL, item = CASE position
        WHEN 3 THEN 'x' WHEN 4 THEN 'null' WHEN 5 THEN '{"name":" ","tag":""}' WHEN 6 THEN '{"name":"a"}'
        WHEN 7 THEN '{"name":"a","tag":"","id":5}' WHEN 8 THEN '{ "name":"a","tag":""}'
        ELSE '{"tag":"","name":"a"}' END, id = CASE position WHEN 10 THEN -1 ELSE id END
        WHERE position BETWEEN 3 AND 10`,
      [
        'plant 3 is not JSON',
        'plant 4 is not valid: must be an object',
        'plant 5 is not valid: name must have no control characters (U+0000 to U+001F, U+007F to U+009F), and at least one character that is neither a space nor a no-break space',
        'plant 6 is not valid: tag is required',
        'plant 7 is not in the stored format',
        'plant 8 is not in the stored format',
        'plant 9 is not in the stored format',
        'plant 10 is not valid: id must be at least 0',
      ],
    ],
    [
      'a line feed in an item',
      `UPDATE plants SET checksum = NULL, item = '{"name":"a",\n"tag":""}' WHERE position = 3`,
      ['plant 3 is not in the stored format'],
    ],
    [
      'more than ten faults',
      `UPDATE plants SET checksum = 1 WHERE position > 40`,
      Array.from({ length: 10 }, (_, n) => `plant ${41 + n} does not match its checksum`),
    ],
    [
      'epochs that are not in order, or begin behind the end',
      `UPDATE epochs SET start = 62 WHERE number = 1`,
      [
        'an epoch begins after plant 62, but the log ends at plant 61',
        'an epoch begins after plant 0, before the one that it follows',
      ],
    ],
    ['no epochs', 'DELETE FROM epochs', ['the first plants belong to no epoch']],
    [
      'an id that is there twice, because its index is gone',
      'DROP INDEX plants_id; UPDATE plants SET id = 77, checksum = NULL WHERE position = 3',
      [
        'plants_id is missing from the schema',
        'plant 3 has lost its checksum',
        'plant 61 has the id 77, which another plant has, too',
      ],
    ],
    [
      'a plant that was altered, and its checksum taken away',
      `UPDATE plants SET checksum = NULL, item = '{"name":"b","tag":""}' WHERE position = 9`,
      ['plant 9 has lost its checksum'],
    ],
    [
      'tokens that cannot be',
      `UPDATE tokens SET scopes = 'plants:read plants:all', hash = upper(hash)`,
      [/^token \w{8} has a hash that is no SHA-256$/, /^token \w{8} has scopes that do not exist$/],
    ],
  ]
  for (const [title, statements, faults] of damages)
    test(`${engine.name}: ${title}`, async (t) => {
      const url = await make(t, engine)
      await tamper(url, statements)
      const found = await findFaults(url)
      t.match(found, faults)
      t.equal(found.length, faults.length)
    })
}

for (const engine of engines)
  test(`${engine.name}: a repair in several portions leaves out no plant`, async (t) => {
    const url = await make(t, engine, many)
    await tamper(url, 'UPDATE plants SET checksum = NULL')
    const store: Store = await open(t, url)
    t.match(await store.upkeep?.repair(many + 1), { repaired: many + 1 })
    t.match(await verifyStore(url), { unchecked: 0, faultCount: 0 })
  })

test('SQLite: an empty table meta, without which PostgreSQL is refused', async (t) => {
  const url = await make(t, sqlite)
  await tamper(url, 'DELETE FROM meta')
  t.strictSame(await findFaults(url), ['the table meta has no id of the store'])
})

test('PostgreSQL: without the row that batches lock nothing is added, and verify says so', {
  skip,
}, async (t) => {
  const url = await make(t, postgres)
  await tamper(url, 'DELETE FROM head')
  t.strictSame(await findFaults(url), ['the table head has 0 rows, not the one that a batch locks'])
  const store = await openStore(url, { logger: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  const added = store.log.append([{ item: '{"name":"a","tag":""}', id: undefined }])
  await t.rejects(added, { name: 'StoreUnavailable', outcome: 'nothing-added', message: /no row/ })
})

test('PostgreSQL: a position that is there twice, because its index is gone', { skip }, async (t) => {
  const url = await make(t, postgres)
  await tamper(
    url,
    'ALTER TABLE plants DROP CONSTRAINT plants_pkey; UPDATE plants SET position = 8, checksum = NULL WHERE position = 7',
  )
  t.strictSame(await findFaults(url), [
    'plants_pkey is missing from the schema',
    'plant 7 is missing',
    'plant 8 has lost its checksum',
    'plant 8 is there twice',
  ])
})

test('guards of the log that are gone', { skip }, async (t) => {
  const [file, database] = [await make(t, sqlite), await make(t, postgres)]
  const store = await open(t, file)
  await store.sql.execute('DROP TRIGGER plants_no_update')
  t.strictSame(await findFaults(file), ['plants_no_update is missing from the schema'])
  await tamper(database, 'ALTER TABLE plants DISABLE TRIGGER plants_no_change')
  t.strictSame(await findFaults(database), ['plants_no_change is missing from the schema'])
})

test('a bit that flipped inside an item, in the bytes of the file', async (t) => {
  const url = await make(t, sqlite)
  const path = fileURLToPath(url)
  const before = readFileSync(path)
  flipBit(path, 'the last')
  const { faults, plants } = await verifyStore(url)
  t.strictSame(faults.map(describeFault), ['plant 61 does not match its checksum'])
  t.equal(plants, 61)
  t.equal(readFileSync(path).length, before.length)
})

test('a bit that flipped where there is no checksum, and left no UTF-8', async (t) => {
  const { url } = await makeKept(t, 'SQLite')
  flipBit(url.slice('file:'.length), 'ヤシ', 0x40)
  const faults = await findFaults(url)
  t.strictSame(faults, ['plant 3 is not in UTF-8'])
})

test('a file that was cut is refused', async (t) => {
  const url = await make(t, sqlite, many)
  truncate(fileURLToPath(url), 4096 * 20)
  await t.rejects(verifyStore(url), { message: /^cannot open .*: database disk image is malformed$/ })
})

test('a page of the plants that was overwritten: the positions on it are named, all others are checked', async (t) => {
  const url = await make(t, sqlite, many)
  const path = fileURLToPath(url)
  await tamper(url, 'UPDATE plants SET checksum = 1 WHERE position IN (7, 2900); DELETE FROM segments')
  overwritePage(path, findPage(path, ' 1500"'))
  const { faults, checksum, unread, plants } = await verifyStore(url)
  const [{ first, last } = { first: 0, last: 0 }] = unread
  t.equal(unread.length, 1)
  t.ok(first <= 1501 && last >= 1501 && last - first < 200, `${first} to ${last}`)
  t.equal(plants, many + 1 - (last - first + 1))
  t.equal(checksum, null)
  const reason = 'cannot be read: database disk image is malformed'
  t.strictSame(faults.map(describeFault), [
    `plants ${first} to ${last} ${reason}`,
    `the whole file ${reason}`,
    'plant 7 does not match its checksum',
    'plant 2900 does not match its checksum',
  ])
  const { code, stdout } = await runCommand(['verify', url])
  t.equal(code, 1)
  t.match(stdout, `\nplants that can be read: 1 to ${first - 1}, ${last + 1} to ${many + 1}\n`)
})

test('segments that cannot be read, and a last page that cannot be', async (t) => {
  const url = await make(t, sqlite, many)
  const path = fileURLToPath(url)
  overwritePage(path, findPage(path, 'the last'))
  const { faults, checksum, head } = await verifyStore(url)
  t.equal(checksum, null)
  t.equal(head, 2000, 'the end of the last segment')
  t.match(faults.map(describeFault).join(), /^the end of the log cannot be read: /)
})

test('plants whose texts cannot be read are named alone, and one that can be between them', async (t) => {
  const url = await make(t, sqlite)
  // So long that SQLite keeps the end of it in pages of their own.
  const long = (end: string) => `{"name":"${'x'.repeat(10_000)} ${end}","tag":""}`
  const items = [long('the end'), '{"name":"a","tag":""}', long('another end')]
  const rows = items.map((item, index) => `(${62 + index}, '${item}')`)
  await tamper(url, `INSERT INTO plants (position, item) VALUES ${rows}`)
  const path = fileURLToPath(url)
  for (const end of ['the end', 'another end']) overwritePage(path, findPage(path, end) - 1)
  const { faults, checksum } = await verifyStore(url)
  const others = faults.map(describeFault).filter((fault) => !fault.startsWith('integrity check'))
  const reason = 'cannot be read: database disk image is malformed'
  t.strictSame(others, [`plant 62 ${reason}`, `plant 64 ${reason}`, 'plant 63 has lost its checksum'])
  t.equal(checksum, null)
  t.match(await runCommand(['verify', url]), { code: 1, stdout: /\nplants that can be read: 1 to 61, 63\n/ })
})

test('a destroyed first page of the plants: each fault is one line', async (t) => {
  const url = await make(t, sqlite)
  const path = fileURLToPath(url)
  const file = new DatabaseSync(path, { readOnly: true })
  const root = Number(
    file.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'plants'").get()?.rootpage,
  )
  file.close()
  const bytes = readFileSync(path)
  bytes.writeInt32BE(-1, (root - 1) * 4096)
  writeFileSync(path, bytes)
  const faults = await findFaults(url)
  const reason = 'cannot be read: database disk image is malformed'
  t.match(faults, [
    `the end of the log ${reason}`,
    `the beginning of the log ${reason}`,
    /^(integrity check: Tree|the whole file cannot be read:) /,
  ])
  t.notMatch(faults.join(), /[\n*]/)
  t.match((await runCommand(['verify', url])).stdout, '\nplants that can be read: none\n')
  t.strictSame(await runCommand(['export'], { DATABASE_URL: url }), {
    code: 1,
    stdout: '',
    stderr:
      'plant-store: the database of DATABASE_URL cannot be used now: database disk image is malformed\n',
  })
})

test('an index that does not agree with its table', async (t) => {
  const url = await make(t, sqlite)
  await tamper(
    url,
    `PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', 'NULL') WHERE name = 'plants_id'`,
  )
  t.match(await findFaults(url), [/^integrity check: .* index plants_id$/])
})

test('faults on the first page and on the last are named, and the checksum is that of the plants', async (t) => {
  const url = await make(t, sqlite, many)
  const checksum = await sumLog(await open(t, url))
  await tamper(url, `UPDATE plants SET checksum = 1 WHERE position IN (1, ${many})`)
  t.match(await verifyStore(url), { checksum, faults: [{ position: 1 }, { position: many }] })
})

test('a table that is gone is one fault, and the others are checked', async (t) => {
  const url = await make(t, sqlite)
  await tamper(url, 'DROP TABLE epochs')
  t.strictSame(await findFaults(url), ['the list of epochs cannot be read: no such table: epochs'])
  t.match(await runCommand(['verify', url]), { code: 1, stdout: /61 plants, SHA-256 [0-9a-f]{64}\n/ })
})

test('plants that are gone by the time their page is read', async (t) => {
  const url = await make(t, sqlite)
  const view = await openView(url)
  t.teardown(() => view.close())
  const { faults } = await checkPage(view, { after: 61, last: 62 }, 0)
  t.strictSame(faults.map(describeFault), ['plant 62 is missing'])
})

test('the command names the faults and exits with 1, changes nothing, and refuses what is not a store', async (t) => {
  const url = await make(t, sqlite)
  const run = (args: string[], env = {}) => runCommand(['verify', ...args], env)
  const { checksum } = await verifyStore(url)
  const words = `SQLite, schema version 2: 61 plants, SHA-256 ${checksum}\n`
  const good = { code: 0, stdout: `${words}no faults\n`, stderr: '' }
  t.strictSame(await run([], { DATABASE_URL: url }), good)
  await tamper(
    url,
    `UPDATE plants SET checksum = 1 WHERE position > 30;
    UPDATE plants SET checksum = NULL WHERE position = 1; UPDATE epochs SET start = 1 WHERE number = 2`,
  )
  const bad = await run([url, '--repair'])
  t.match(bad, { code: 1, stderr: '' })
  t.match(
    bad.stdout,
    /^SQLite[^\n]+\nplant 31 does not match its checksum\n(plant [^\n]+\n){9}and 21 more faults\n1 plant without a checksum[^\n]+\n31 faults\n$/,
  )
  const json = await run([url, '--json'])
  t.equal(json.code, 1)
  const one = await make(t, sqlite)
  await tamper(one, 'UPDATE plants SET checksum = 1 WHERE position = 30')
  t.match((await run([one])).stdout, /^SQLite[^\n]+\nplant 30 does not match its checksum\n1 fault\n$/)
  t.match(JSON.parse(json.stdout), { faultCount: 31, unchecked: 1, repaired: 0, faults: [{ position: 31 }] })
  t.match(await run(['file:.']), { code: 1, stderr: /^plant-store: URL names a folder/ })
  t.match(await run(['ftp://x']), { code: 2, stderr: /^plant-store: URL must start with/ })
  t.strictSame(await run(['--database-url', one]), await run([one]))
  t.match(await run([one, '--database-url', one]), { code: 2, stderr: /URL and --database-url/ })
  t.match(await run(['file:no/such.db']), {
    code: 1,
    stdout: '',
    stderr: `plant-store: there is no file ${resolve('no/such.db')}\n`,
  })
})

test('SIGINT ends the command before the end, as it ends any program that only reads', {
  skip,
}, async (t) => {
  const url = await make(t, postgres)
  const server = await sharedServer()
  const other = new pg.Client(url)
  await other.connect()
  t.teardown(() => other.end())
  await other.query('BEGIN; LOCK TABLE plants')
  const { child, ended, output } = spawnCli(t, ['verify', url])
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await eventually(async () => {
    if ((await server.query(waiting, new URL(url).pathname.slice(1))).length === 0)
      throw new Error('it does not wait for the lock')
  })
  child.kill('SIGINT')
  await other.query('COMMIT')
  t.strictSame(await ended, { code: null, signal: 'SIGINT' })
  t.strictSame(output(), { stdout: '', stderr: '' })
})

test('a repair that is stopped goes on the next time', async (t) => {
  const url = await make(t, sqlite, many)
  await tamper(
    url,
    `UPDATE plants SET checksum = NULL; UPDATE epochs SET start = ${many + 1} WHERE number = 2`,
  )
  const store: Store = await open(t, url)
  const stop = new AbortController()
  const { select, execute } = store.sql
  const stopping: typeof execute = (text, values) => {
    stop.abort(new Error('enough'))
    return execute(text, values)
  }
  const { upkeep } = makeSqlStore({ select, execute: stopping }, sqliteDialect)
  const stopped = upkeep.repair(many + 1, stop.signal)
  await t.rejects(stopped, { message: 'enough' })
  const { unchecked } = await verifyStore(url)
  t.ok(unchecked > 0 && unchecked < many + 1)
  t.match(await store.upkeep?.repair(0), { repaired: unchecked, segments: 0 })
  t.match(await verifyStore(url), { unchecked: 0, faultCount: 0 })
})
