// import: plants from files in all formats and codings, into both engines.
import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib'
import pg from 'pg'
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { Relay, startRelay } from '../store/relay.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines, findEngine, sqlite } from '../support/engines.ts'
import type { Store } from '../support/stores.ts'
import { until } from '../support/until.ts'
import {
  fixture,
  open,
  type Plant,
  pipeImport,
  readPlants,
  runImport,
  shareStore,
  startProgram,
  writeInput,
  written,
} from './imports.ts'

const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')
const usda = fileURLToPath(new URL('../fixtures/usda-plants.csv.gz', import.meta.url))
const none = { added: 0, replayed: 0, conflict: 0, rejected: 0, skipped: 0 }

const codings: Record<string, (text: string) => Buffer> = {
  plain: (text) => Buffer.from(text),
  gzip: (text) => gzipSync(text),
  zstd: (text) => zstdCompressSync(text),
  'gzip in two members': (text) => Buffer.concat([gzipSync(text.slice(0, 999)), gzipSync(text.slice(999))]),
  'gzip that is padded': (text) => Buffer.concat([gzipSync(text), Buffer.alloc(200_000)]),
  'zstd behind a frame to be skipped': (text) =>
    Buffer.concat([
      Buffer.from('5a2a4d1804000000plnt', 'hex').subarray(0, 8),
      Buffer.alloc(4),
      zstdCompressSync(text),
    ]),
  'zstd in two frames': (text) =>
    Buffer.concat([zstdCompressSync(text.slice(0, 999)), zstdCompressSync(text.slice(999))]),
  'UTF-8 with a byte order mark': (text) => Buffer.from(`\ufeff${text}`),
}

for (const engine of engines)
  test(`${engine.name}: the plants of the fixture are imported from every format in every coding`, async (t) => {
    const { next } = await shareStore(t, await engine.createDatabase(t))
    // What a coding comes to is the same for each engine.
    const all = Object.entries(codings).slice(0, engine === sqlite ? undefined : 1)
    for (const [format, write] of Object.entries(written))
      for (const [coding, encode] of all) {
        // The text is the same in each coding.
        const options = { batchPlants: 100, restart: true }
        const { result, error, plants } = await next(writeInput(t, encode(write(fixture))), options)
        t.error(error)
        t.match(result, { ...none, added: 625, records: 625 }, `${format}, ${coding}`)
        t.strictSame(plants, fixture)
      }
  })

test('of the USDA list, rows without a common name are rejected, and all have a scientific one', async (t) => {
  const [common, scientific] = [await sqlite.createDatabase(t), await sqlite.createDatabase(t)]
  const rejects = join(createDirectory(t), 'rejects.csv')
  const map = { name: 'common_name', tag: 'family' }
  const named = await runImport(common, usda, { map, rejects, isTerminal: true })
  t.match(named.result, { ...none, added: 4960, rejected: 40 })
  t.equal(named.said[0], 'input, line 21: common_name must have at least 1 character')
  t.equal(named.said[10], 'and 30 more')
  t.equal(named.said.length, 11)
  t.match(named.result?.reasons[0], {
    line: 21,
    reason: 'common_name must have at least 1 character',
    errors: [{ code: 'length', pointer: '/common_name' }],
  })
  const rows = gunzipSync(readFileSync(usda)).toString().split('\n')
  const expected = [0, ...(named.result?.reasons ?? []).map(({ line }) => line - 1)].map(
    (index) => rows[index],
  )
  t.equal(expected.length, 41)
  t.equal(readFileSync(rejects, 'utf8'), `${expected.join('\n')}\n`)
  const all = await runImport(scientific, usda, { map: { name: 'scientific_name', tag: 'family' } })
  t.match(all.result, { ...none, added: 5000 })
  t.strictSame(all.said, [])
  const [first] = await readPlants(scientific)
  t.strictSame(first, { name: 'Bacidia lobarica Printzen & Tønsberg', tag: 'Bacidiaceae' })
})

/** What an input comes to: the plants that are added, and what is said of the rest. */
const readings: [title: string, input: string, options: object, plants: Plant[], said: RegExp[]][] = [
  [
    'CSV with quotes, line feeds inside them, ids and empty ids',
    'id,tag,name\n7,"a, ""b""",Fern\n,,"Two\nlines"\n8,x,Moss\n\n"",y,Oak\n',
    {},
    [
      { name: 'Fern', tag: 'a, "b"', id: 7 },
      { name: 'Moss', tag: 'x', id: 8 },
      { name: 'Oak', tag: 'y' },
    ],
    [/^input, line 3: name must have no control characters/],
  ],
  [
    'CSV whose lines end in different ways, the last in none',
    'name,tag\r\na,1\nb,2\r\nc,3',
    {},
    [
      { name: 'a', tag: '1' },
      { name: 'b', tag: '2' },
      { name: 'c', tag: '3' },
    ],
    [],
  ],
  [
    'CSV with a carriage return inside a cell',
    'name,tag\na\rb,1\n',
    {},
    [],
    [/line 2: name must have no con/],
  ],
  [
    'white space is kept unless it is to be trimmed',
    'name,tag\n a ,\u00a0b\n',
    {},
    [{ name: ' a ', tag: '\u00a0b' }],
    [],
  ],
  [
    'white space that is to be trimmed, in CSV',
    ' name ,tag,id\n a ,\u00a0b, 17 \n  ,x,\n',
    { trim: true },
    [{ name: 'a', tag: 'b', id: 17 }],
    [/line 3: name must have at least 1 character/],
  ],
  [
    'white space that is to be trimmed, in JSON',
    '{"name":" a ","tag":" "}\n{"name":7,"tag":null}\n',
    { trim: true },
    [{ name: 'a', tag: '' }],
    [/line 2: name must be a string; tag must be a string/],
  ],
  [
    'members under other names',
    '{"common":"a","tag":"t","other":[1],"no":27}\n{"common":"","common":"b","name":"c","tag":"t"}\n{"tag":""}\n{"common":"d","tag":"","no":1e-400,"x":1,"x":2}\n',
    { map: { name: 'common', id: 'no' } },
    [{ name: 'a', tag: 't', id: 27 }],
    [/line 2: common must be given once$/, /line 3: common is required$/, /line 4: no must be an integer$/],
  ],
  [
    'columns that are to be ignored',
    'x,name,y,tag\n1,a,2,b\n',
    { ignoreUnknown: true },
    [{ name: 'a', tag: 'b' }],
    [],
  ],
  [
    'NDJSON with CRLF, empty lines, spaces and escapes, the last line with no end',
    '{"name": "a", "tag": "\\u00e9\\ud83c\\udf34"}\r\n\r\n\n {"tag":"b","name":"c","id":5} ',
    {},
    [
      { name: 'a', tag: 'é🌴' },
      { name: 'c', tag: 'b', id: 5 },
    ],
    [],
  ],
  ['an empty array', ' [ ] \n', {}, [], []],
  ['nothing', '', {}, [], []],
  ['CSV with a header row alone', 'name,tag\n', {}, [], []],
  [
    'an array in one line, with brackets and quotes in its texts',
    '[{"name":"]},","tag":"\\"\\\\"},{"name":"[{","tag":"é"}]',
    {},
    [
      { name: ']},', tag: '"\\' },
      { name: '[{', tag: 'é' },
    ],
    [],
  ],
]

test('it reads', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const [title, input, options, plants, said] of readings)
    await t.test(title, async (t) => {
      const imported = await next(writeInput(t, input), options)
      t.error(imported.error)
      t.strictSame(imported.plants, plants)
      t.equal(imported.said.length, said.length)
      said.forEach((reason, index) => {
        t.match(imported.said[index], reason)
      })
    })
})

for (const engine of engines)
  test(`${engine.name}: ids make an import repeatable, and conflicts are told`, async (t) => {
    const { next } = await shareStore(t, await engine.createDatabase(t))
    const plants = fixture.map((plant, id) => ({ ...plant, id }))
    const path = writeInput(t, written.ndjson?.(plants) ?? '')
    t.match((await next(path)).result, { ...none, added: 625 })
    t.match(
      (await next(path)).error?.message,
      /^input: 625 records already imported on 20.*; --resume adds what is new/,
    )
    t.match((await next(path, { restart: true })).result, { ...none, replayed: 625 })
    const rejects = join(createDirectory(t), 'rejects')
    const changed = writeInput(t, `{"name":"new","tag":""}\n{"name":"other","tag":"","id":3}\n`)
    const { result, said, plants: added } = await next(changed, { rejects })
    t.match(result, { ...none, added: 1, conflict: 1 })
    t.match(said, [/^input, line 2: id is the id of a plant that already exists/])
    t.equal(readFileSync(rejects, 'utf8'), '{"name":"other","tag":"","id":3}\n')
    t.match(result?.reasons, [{ line: 2, errors: [{ code: 'id-conflict' }] }])
    t.strictSame(added, [{ name: 'new', tag: '' }])
  })

test('a dry run checks everything and opens no database', async (t) => {
  const directory = createDirectory(t)
  const rejects = join(directory, 'rejects')
  const path = writeInput(t, '{"name":"a","tag":""}\n{}\n')
  const { result } = await runImport(`file:${directory}/no/plants.db`, path, { dryRun: true, rejects })
  t.match(result, { ...none, added: 1, rejected: 1 })
  t.match(result?.reasons, [{ line: 2, reason: 'name is required; tag is required' }])
  t.equal(readFileSync(rejects, 'utf8'), '{}\n')
  t.notOk(existsSync(join(directory, 'no')))
})

test('how long a record may be does not depend on where it is in the input', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  // Three bytes for each character: 60 KB.
  const note = '木'.repeat(20_000)
  const plant = JSON.stringify({ name: 'a', tag: '', note })
  // Wherever the input is cut into pieces, one of these is cut.
  const [lines, rows] = [`${plant}\n`.repeat(9), `a,,${note}\n`.repeat(9)]
  for (const input of [`${plant}\n`, lines, `name,tag,note\n${rows}`]) {
    const args = ['import', writeInput(t, input), '--ignore-unknown', '--dry-run']
    t.match(await runCommand(args, { DATABASE_URL }), { code: 0, stderr: '' })
  }
})

test('a rejected row keeps the text that it had, with its quotes', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const rejects = join(createDirectory(t), 'rejects')
  const row = ',"a ""b"", c"'
  t.match((await next(writeInput(t, `name,tag\n${row}\n`), { rejects })).result, { ...none, rejected: 1 })
  t.equal(readFileSync(rejects, 'utf8'), `name,tag\n${row}\n`)
})

test('the command reads stdin, prints a line or JSON, and ends with 1 when records were rejected', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const path = writeInput(t, 'common,tag\na,x\n,y\n')
  const words = await runCommand(['import', path, '--map', 'name=common'], { DATABASE_URL })
  t.match(words, {
    code: 1,
    stdout:
      /^1 added, 0 replayed, 0 conflicting, 1 rejected in [\d.]+ s, [\d,]+ plants?\/s; into \S+, made now\n$/,
  })
  t.equal(words.stderr, `${path}, line 3: common must have at least 1 character\n`)

  const piped = await pipeImport(t, DATABASE_URL, '[{"name":"b","tag":""}]', '--json', '--batch', '1')
  t.match(piped, { code: 0, stderr: '' })
  t.match(JSON.parse(piped.stdout), {
    added: 1,
    replayed: 0,
    conflicting: 0,
    rejected: 0,
    skipped: 0,
    seconds: Number,
    plantsPerSecond: Number,
    database: String,
    made: false,
    reasons: [],
  })
  const dry = await runCommand(['import', path, '--dry-run', '--map', 'name=common'], { DATABASE_URL })
  t.equal(dry.code, 1)
  t.match(dry.stdout, /^1 valid, 1 rejected in [^\n]+; compared with \S+; nothing was added\n$/)
  t.strictSame(
    (await readPlants(DATABASE_URL)).map(({ name }) => name),
    ['a', 'b'],
  )
})

test('options that are not understood end with 2', async (t) => {
  for (const args of [
    ['import'],
    ['import', '-', '--format', 'xml'],
    ['import', '-', '--map', 'colour=x'],
    ['import', '-', '--map', 'colour'],
    ['import', '-', '--map', 'name=x', '--map', 'name=y'],
    ['import', '-', '--batch', '0'],
  ]) {
    t.match(await runCommand(args), { code: 2, stderr: /^error: / }, args.join(' '))
  }
})

/** A store whose next batch comes to nothing that is known: it is committed, or it is not. */
async function makeUncertain(url: string, isCommitted: boolean): Promise<Store> {
  const store = await open(url)
  let isNext = true
  const { log } = store
  const append: typeof log.append = async (...args) => {
    if (!isNext) return log.append(...args)
    isNext = false
    if (isCommitted) await log.append(...args)
    throw new StoreUnavailable('unknown', 'the answer is lost')
  }
  return {
    ...store,
    id: store.id,
    sql: store.sql,
    close: () => store.close(),
    ready: store.ready,
    log: { ...log, append },
  }
}

for (const engine of engines)
  for (const isCommitted of [true, false])
    test(`${engine.name}: a batch with an unknown outcome, ${isCommitted ? '' : 'not '}committed, is there once`, async (t) => {
      const url = await engine.createDatabase(t)
      const plants = fixture.slice(0, 30).map((plant, id) => (id % 2 ? plant : { ...plant, id }))
      const path = writeInput(t, written.ndjson?.(plants) ?? '')
      const openStore = () => makeUncertain(url, isCommitted)
      const { result, error, said } = await runImport(url, path, {
        openStore,
        batchPlants: 10,
        // What is there needs no further attempt.
        patienceMs: isCommitted ? 0 : 9000,
      })
      t.error(error)
      t.match(result, isCommitted ? { added: 25, replayed: 5 } : { added: 30, replayed: 0 })
      t.strictSame(said, ['the store is unavailable, retrying: the answer is lost'])
      t.strictSame(await readPlants(url), plants)
    })

test('a locked database is retried for a while, and then given up', async (t) => {
  const { store, next } = await shareStore(t, await sqlite.createDatabase(t))
  const path = writeInput(t, written.ndjson?.(fixture) ?? '')
  const other = new DatabaseSync(String((await store.sql.select('PRAGMA database_list'))[0]?.file))
  t.teardown(() => other.close())
  const { log } = store
  const soonGivenUp: typeof log.append = (entries, _, mark) =>
    log.append(entries, performance.now() + 200, mark)
  /** The lock is taken between the place and the first batch. */
  const openStore = async () => {
    const append: typeof log.append = (...args) => {
      other.exec('BEGIN IMMEDIATE')
      openStore.append = soonGivenUp
      return soonGivenUp(...args)
    }
    openStore.append = append
    const close = async () => {}
    return { ...store, close, log: { ...log, append: (...args) => openStore.append(...args) } as typeof log }
  }
  openStore.append = soonGivenUp
  const given = await next(path, { openStore })
  t.match(given.error, { name: 'StoreUnavailable', outcome: 'nothing-added', message: /locked|busy/ })
  t.strictSame(given.said, [])
  other.exec('ROLLBACK')

  const said: string[] = []
  const say = (line: string) => {
    said.push(line)
    openStore.append = (...args) => {
      // The attempt after the next one finds it open.
      openStore.append = (...args) => {
        other.exec('ROLLBACK')
        return log.append(...args)
      }
      return soonGivenUp(...args)
    }
  }
  const { result, error } = await next(path, { openStore, say, restart: true, patienceMs: 60_000 })
  t.error(error)
  t.match(said, [/^the store is unavailable, .*(locked|busy)/])
  t.match(result, { ...none, added: 625 })
})

test('an import waits for a server that starts later, and says so', { skip: noPostgres }, async (t) => {
  const direct = await postgres.createDatabase(t)
  const { relay, url, port } = await startRelay(t, direct)
  relay.close()
  const { child, ended } = startProgram(t, ['import', '-'], url)
  child.stdin.end('{"name":"a","tag":"b"}\n')
  const [line] = await once(child.stderr, 'data')
  t.match(String(line), /^cannot connect to the database yet: 127\.0\.0\.1:\d+\/\w+: nothing listens there: /)
  const later = new Relay(Number(new URL(direct).port))
  t.teardown(() => later.close())
  await later.listen(port)
  t.match(await ended, { code: 0, stdout: /^1 added, / })
  t.strictSame(await readPlants(direct), [{ name: 'a', tag: 'b' }])
})

test('a database that takes nothing any more ends the command, which says how to continue', async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await open(url)
  t.teardown(() => store.close())
  const line = '{"name":"a","tag":"b"}\n'
  const { child, ended } = startProgram(
    t,
    ['import', '-', '--quiet', '--batch', '50', '--patience', '0'],
    url,
  )
  child.stdin.write(line.repeat(4000))
  await until(async () => (await store.log.head()).position > 0)
  const other = new DatabaseSync(fileURLToPath(url), { timeout: 5000 })
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  child.stdin.end(line.repeat(4000))
  const end = await ended
  t.match(end, { code: 1, stdout: /^[1-9][\d,]* added, / })
  t.match(
    end.stderr,
    /^plant-store: the import was cut short: [^\n]+; run the same command with --resume to go on\n$/m,
  )
})

test('CSV may have other delimiters, and empty columns at the end', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const input of [
    'name;tag;"x,y,z"\nFern;a,b;\n',
    'name\ttag\nFern\ta,b\n',
    '\n\r\nname;tag\nFern;a,b\n',
    'sep=;\r\nname;tag\r\nFern;a,b\r\n',
    'SEP=|\nname|tag\nFern|a,b\n',
    '\ufefftag,name,,\n"a,b",Fern,,\n',
  ]) {
    const { error, plants } = await next(writeInput(t, input), { ignoreUnknown: true })
    t.error(error)
    t.strictSame(plants, [{ name: 'Fern', tag: 'a,b' }], input)
  }
  const { said } = await next(writeInput(t, 'name,tag,\nFern,a,b\n'))
  t.match(said, ['input, line 2: has 3 cells, the header row has 2'])
})

test('a dry run compares ids with the store where there is one', async (t) => {
  for (const { createDatabase } of engines) {
    const DATABASE_URL = await createDatabase(t)
    const path = writeInput(t, '{"name":"b","tag":"","id":1}\n')
    const first = await runCommand(['import', path, '--dry-run'], { DATABASE_URL })
    t.match(first, { code: 0, stdout: /^1 valid, 0 rejected in [^;]+; nothing was added\n$/ })
    await runImport(DATABASE_URL, writeInput(t, '{"name":"a","tag":"","id":1}\n'))
    const other = await runCommand(['import', path, '--dry-run'], { DATABASE_URL })
    t.match(other, {
      code: 1,
      stdout: /^0 valid, 1 rejected in [^;]+; compared with [^;]+; nothing was added\n$/,
    })
  }
  const broken = await runCommand(['import', writeInput(t, '{}\n'), '--dry-run'], {
    DATABASE_URL: `file:${usda}`,
  })
  t.match(broken, { code: 1, stderr: /usda-plants.csv.gz is not a plant store|cannot open/ })
})

test('no tables are made beside those of another project, unless told', { skip: noPostgres }, async (t) => {
  const DATABASE_URL = await postgres.createDatabase(t)
  const client = new pg.Client(DATABASE_URL)
  await client.connect()
  t.teardown(() => client.end())
  await client.query('CREATE TABLE users (name text)')
  const args = ['import', writeInput(t, '{"name":"a","tag":""}\n')]
  const refused = await runCommand(args, { DATABASE_URL })
  t.match(refused, {
    code: 1,
    stderr: /it holds no plant store, but other tables \(public\.users\): --create makes one/,
  })
  const { rows } = await client.query(
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  )
  t.same(rows, [{ relname: 'users' }])
  t.match(await runCommand([...args, '--create'], { DATABASE_URL }), {
    code: 0,
    stdout: /into postgres\S+, made now\n$/,
  })
})

test('what root makes belongs to the owner of the directory', {
  skip: process.getuid?.() !== 0,
}, async (t) => {
  const directory = createDirectory(t)
  chownSync(directory, 65_534, 65_534)
  const DATABASE_URL = `file:${directory}/a/b/plants.db`
  const rejects = join(directory, 'rejects')
  const path = writeInput(t, '{"name":"a","tag":""}\n{}\n')
  t.match(await runCommand(['import', path, '--rejects', rejects], { DATABASE_URL }), { code: 1 })
  t.match(await runCommand(['export', `${directory}/all.json`], { DATABASE_URL }), {
    code: 0,
    stdout: /^exported 1 plant from \S+\/a\/b\/plants\.db to \S+; the log ends at plant 1\n$/,
  })
  for (const name of ['a', 'a/b', 'a/b/plants.db', 'rejects', 'all.json'])
    t.equal(statSync(join(directory, name)).uid, 65_534, name)
})

test('a record that is too long is told, and left out of the rejects', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const path = writeInput(t, `{}\n{"name":"${'x'.repeat(70_000)}"}\n`)
  const rejects = join(createDirectory(t), 'rejects')
  for (const [file, name] of [
    ['-', 'stdout'],
    [rejects, rejects],
  ] as const) {
    const ran = await runCommand(['import', path, '--restart', '--rejects', file], { DATABASE_URL })
    t.match(ran, { code: 1, stderr: `line 2: is longer than 64 KiB; left out of ${name}\n` })
    t.equal(file === '-' ? ran.stdout : readFileSync(file, 'utf8'), '{}\n')
  }
})

test('a database that is made is named, and said to be new', async (t) => {
  const database = join(createDirectory(t), 'plants.db')
  const path = writeInput(t, '{"name":"a","tag":""}\n')
  const made = await runCommand(['import', path, '--json'], { DATABASE_URL: `file:${database}` })
  t.match(JSON.parse(made.stdout), { added: 1, database, made: true })
  const again = await runCommand(['import', path], { DATABASE_URL: `file:${database}` })
  t.match(again, { code: 1, stdout: `; into ${database}\n` })
})
