// export: every plant leaves the store as it is in there, in the order of the log, whatever happens meanwhile.
import { type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { test } from 'tap'
import type { NewPlant } from '../../schemas/plant.ts'
import { exportToFile } from '../../src/maintenance/export/export-plants.ts'
import { serializeItem } from '../../src/plants/item.ts'
import { FileRefused } from '../../src/runtime/new-file.ts'
import { runCommand } from '../support/commands.ts'
import { fill, open } from '../support/copies.ts'
import { createDirectory, engines, findEngine, sqlite } from '../support/engines.ts'
import { exportAll, importAll, readExport, view } from '../support/exports.ts'
import { isFull } from '../support/full.ts'
import { cli } from '../support/imports.ts'
import { makeKept } from '../support/kept.ts'
import { noteProcess } from '../support/leftovers.ts'
import { inherited } from '../support/processes.ts'
import { spawnCli } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const fixture: NewPlant[] = JSON.parse(
  readFileSync(fileURLToPath(new URL('../fixtures/plants.json', import.meta.url)), 'utf8'),
)
const odd: NewPlant[] = [
  { name: 'a "b" \\ }', tag: '}', id: 0 },
  { name: ' 山椒 🌿\u2028', tag: '' },
  { name: 'a,b;c', tag: '\ufeff=1+1 ', id: Number.MAX_SAFE_INTEGER },
]

/** What is in a file; the same text can be compressed in more than one way. */
function decode(name: string, bytes: Buffer): Buffer {
  if (name.endsWith('.gz')) return gunzipSync(bytes)
  return name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes
}

async function add(store: Store, plants: NewPlant[]): Promise<void> {
  await store.log.append(plants.map((plant) => ({ item: serializeItem(plant), id: plant.id })))
}

for (const { name, createDatabase } of engines) {
  test(`${name}: what is exported, in any form and coding, is what was added`, async (t) => {
    const url = await createDatabase(t)
    await add(await open(t, url), [...fixture, ...odd])
    const plants = [...fixture, ...odd]
    const lines = plants.map((plant) => `${JSON.stringify(plant)}\n`).join('')
    t.equal((await readExport(t, url, 'all.ndjson')).toString(), lines)
    t.equal(gunzipSync(await readExport(t, url, 'all.jsonl.GZ')).toString(), lines)
    const zstd = await readExport(t, url, 'all.zst')
    t.equal(zstdDecompressSync(zstd).toString(), lines)
    for (let at = 99; at < zstd.length; at += 99) {
      const damaged = zstd.with(at, (zstd[at] as number) ^ 1)
      let text = lines
      try {
        text = zstdDecompressSync(damaged).toString()
      } catch {}
      t.ok(text === lines, `a bit that has changed at ${at} is noticed, or says nothing`)
    }
    const json = (await readExport(t, url, 'all.json')).toString()
    t.strictSame(JSON.parse(json), plants)
    t.equal(json.split('\n').length, plants.length + 3, 'a line for each plant')
    const csv = (await readExport(t, url, 'odd.CSV', { after: fixture.length })).toString()
    t.equal(csv, 'name,tag,id\n"a ""b"" \\ }",},0\n 山椒 🌿\u2028,,\n"a,b;c",\ufeff=1+1 ,9007199254740991\n')
    const bare = odd.map(({ name, tag }) => ({ name, tag }))
    const options = { after: fixture.length, withId: false }
    t.strictSame(JSON.parse((await readExport(t, url, 'bare.json', options)).toString()), bare)
    t.match((await readExport(t, url, 'bare.csv', options)).toString(), /^name,tag\n"a ""b"" \\ }",}\n/)
  })

  test(`${name}: an empty store has an empty export, in each form`, async (t) => {
    const url = await createDatabase(t)
    await open(t, url)
    t.equal((await readExport(t, url, 'a.ndjson')).toString(), '')
    t.strictSame(JSON.parse((await readExport(t, url, 'a.json')).toString()), [])
    t.equal((await readExport(t, url, 'a.csv')).toString(), 'name,tag,id\n')
  })

  test(`${name}: an export holds the log up to one head, while plants are added`, async (t) => {
    const url = await createDatabase(t)
    const store = await open(t, url)
    await fill(store, 6000)
    let added = 0
    const adding: Promise<unknown>[] = []
    const onProgress = () => {
      adding.push(store.log.append([{ item: `{"name":"late ${added++}","tag":""}`, id: undefined }]))
    }
    const text = (await readExport(t, url, 'a.ndjson', { onProgress })).toString()
    await Promise.all(adding)
    t.ok(added > 1, `${added} were added meanwhile`)
    t.equal(text.split('\n').length - 1, 6000)
    t.notMatch(text, 'late')
    const after = (await readExport(t, url, 'b.ndjson', { after: 6000 })).toString()
    t.equal(text + after, (await readExport(t, url, 'c.ndjson')).toString(), 'the rest is what is new')
  })

  test(`${name}: a log with a gap is not exported, and nothing is left behind`, async (t) => {
    const url = await createDatabase(t)
    await fill(await open(t, url), 2000)
    const opened = await view(t, url)
    const path = join(createDirectory(t), 'a.ndjson')
    const options = { format: 'ndjson', compression: 'gzip', withId: true, after: 0 } as const
    const refused = exportToFile(path, opened, { ...options, head: 2001 })
    await t.rejects(refused, { message: /^plants \d+ to 2001 are damaged/ })
    t.strictSame(readdirSync(dirname(path)), [])
  })

  test(`${name}: a store that a version without checksums made is exported, and left as it is`, async (t) => {
    const { url, items, version } = await makeKept(t, name)
    const plants = (await readExport(t, url, 'a.ndjson', { withId: false })).toString()
    t.equal(plants, `${items.join('\n')}\n`)
    t.equal(await version(), 1)
  })
}

for (const from of engines)
  for (const to of engines.filter((to) => isFull || to !== from || engines.length === 1))
    test(`export | import | export, from ${from.name} into ${to.name}: the same bytes`, async (t) => {
      const [source, target] = [await from.createDatabase(t), await to.createDatabase(t)]
      const store = await open(t, source)
      await add(store, [...fixture, ...odd])
      await fill(store, 4100)
      for (const name of ['a.ndjson', 'a.json', 'a.csv.gz', 'a.json.zst']) {
        const into = name === 'a.ndjson' ? target : await to.createDatabase(t)
        const path = await exportAll(t, source, name)
        await importAll(t, into, path)
        t.strictSame(decode(name, await readExport(t, into, name)), decode(name, readFileSync(path)), name)
      }
    })

test('an existing file is replaced only with --force, and nothing else ever is', async (t) => {
  const url = await sqlite.createDatabase(t)
  await fill(await open(t, url), 3)
  const opened = await view(t, url)
  const directory = createDirectory(t)
  const path = join(directory, 'a.ndjson')
  const options = { format: 'ndjson', compression: undefined, withId: true, after: 0, head: 3 } as const
  writeFileSync(path, 'precious')
  await t.rejects(exportToFile(path, opened, options), new FileRefused(`${path} already exists`))
  t.equal(readFileSync(path, 'utf8'), 'precious')
  await exportToFile(path, opened, { ...options, replace: true })
  t.equal(readFileSync(path, 'utf8').split('\n').length, 4)
  mkdirSync(join(directory, 'b'))
  symlinkSync('nowhere', join(directory, 'c'))
  for (const special of [join(directory, 'b'), join(directory, 'c'), '/dev/null'])
    await t.rejects(exportToFile(special, opened, { ...options, replace: true }), {
      message: `${special} is not a regular file`,
    })
  const late = join(directory, 'late.ndjson')
  const onProgress = () => writeFileSync(late, 'precious')
  await t.rejects(exportToFile(late, opened, { ...options, onProgress }), { message: /already exists/ })
  t.equal(readFileSync(late, 'utf8'), 'precious', 'also when it came meanwhile')
  await t.rejects(exportToFile(join(directory, 'no', 'a'), opened, options), {
    message: /^cannot write \S+no\/a: ENOENT: (?!.*partial)/,
  })
  t.strictSame(readdirSync(directory).sort(), ['a.ndjson', 'b', 'c', 'late.ndjson'])
})

test('an item that is not JSON stops an export that has to parse it', async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  await store.log.append([{ item: '{"name":"a","tag":', id: undefined }])
  await t.rejects(exportAll(t, url, 'a.csv'), { message: /^plants 1 to 1 are damaged/ })
})

test('the command exports to stdout or a file, and says up to where', async (t) => {
  const url = await sqlite.createDatabase(t)
  await fill(await open(t, url), 50)
  const run = (...args: string[]) => runCommand(['export', ...args], { DATABASE_URL: url })
  const all = (await readExport(t, url, 'a.ndjson')).toString()
  const summary = `exported 50 plants from ${fileURLToPath(url)}; the log ends at plant 50\n`
  t.strictSame(await run(), { code: 0, stdout: all, stderr: summary })
  t.strictSame(await run('-', '--quiet'), { code: 0, stdout: all, stderr: '' })
  const path = join(createDirectory(t), 'new.csv.gz')
  const { stdout } = await run(path, '--after', '47', '--json')
  t.same(JSON.parse(stdout), {
    plants: 3,
    after: 47,
    head: 50,
    database: fileURLToPath(url),
    file: path,
    format: 'csv',
    compression: 'gzip',
  })
  t.equal(gunzipSync(readFileSync(path)).toString().split('\n').length, 5)
  t.match(await run(path), { code: 1, stdout: '', stderr: `plant-store: ${path} already exists\n` })
  const json = await run('--format', 'json', '--compress', 'none', '--json', '--no-id')
  t.match(JSON.parse(json.stdout), { length: 50 })
  t.match(JSON.parse(json.stderr), { plants: 50, file: '-', format: 'json' })
  t.match(await run(path, '--force', '--compress', 'none'), {
    stdout: `exported 50 plants from ${fileURLToPath(url)} to ${path}; the log ends at plant 50\n`,
  })
  t.match(readFileSync(path, 'utf8'), /^name,tag,id\n/)
  t.match(await run('--after', '51'), {
    code: 1,
    stderr: 'plant-store: the log ends at plant 50: there is no plant 51\n',
  })
  for (const wrong of [
    ['--after', '-1'],
    ['--format', 'xml'],
    ['--compress', 'lz4'],
    [join(dirname(path), 'plants.xml')],
    [join(dirname(path), 'plants.csv.bz2')],
    [join(dirname(path), 'plants.gz.csv.'), '--compress', 'gzip'],
  ])
    t.match(await run(...wrong), { code: 2, stdout: '' }, wrong.join(' '))
  t.match(await run(join(dirname(path), 'plants.xml')), {
    stderr:
      /^error: the ending \.xml of FILE is not known: expected \.ndjson, \.jsonl, \.json, \.csv, with \.gz or \.zst behind it; --format says it for another\n/,
  })
  t.same(readdirSync(dirname(path)), ['new.csv.gz'], 'nothing was made')
  for (const [name = '', ...options] of [['plants.xml', '--format', 'csv'], ['plants'], ['plants.gz']])
    t.match(await run(join(dirname(path), name), ...options), { code: 0 }, name)
})

test('a store that cannot be read is reported in one line, and nothing is made', { skip }, async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'text.db'), 'This is no database.\n'.repeat(1000))
  writeFileSync(join(directory, 'short.db'), 'x')
  writeFileSync(join(directory, 'empty.db'), '')
  const notes = new DatabaseSync(join(directory, 'notes.db'))
  notes.exec('CREATE TABLE notes (text)')
  notes.close()
  const other = await postgres.createDatabase(t)
  const cases: [url: string, reason: RegExp][] = [
    [`file:${directory}/none.db`, /there is no file/],
    [`file:${directory}/text.db`, /cannot open .*text\.db: file is not a database/],
    [`file:${directory}/short.db`, /short\.db is not a plant store/],
    [`file:${directory}/empty.db`, /empty\.db is not a plant store/],
    [`file:${directory}`, /names a folder, not a file: /],
    [`file:${directory}/notes.db`, /notes\.db is not a plant store/],
    [other, /cannot use the database of DATABASE_URL: 127\.0\.0\.1:\d+\/test_\w+: it holds no plant store/],
    [other.replace('test_', 'none_'), /cannot use the database of DATABASE_URL: .* does not exist/],
    ['postgres://postgres@127.0.0.1:1/none', /cannot use the database of DATABASE_URL: .*ECONNREFUSED/],
  ]
  for (const [url, reason] of cases) await t.rejects(view(t, url), { message: reason }, reason.source)
  t.strictSame(readdirSync(directory).sort(), ['empty.db', 'notes.db', 'short.db', 'text.db'])
  const { ended, output } = spawnCli(t, ['export'], { DATABASE_URL: `file:${directory}/none.db` })
  t.match(await ended, { code: 1 })
  t.match(output(), { stdout: '', stderr: /^plant-store: there is no file [^\n]+\n$/ })
})

test('of several servers, those that do not answer are left out', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  await fill(await open(t, url), 3)
  const all = await readExport(t, url, 'a.ndjson')
  const [, server] = /@([^/]+)/.exec(url) as RegExpExecArray
  for (const hosts of [`127.0.0.1:1,${server}`, `${server},${server}`]) {
    const several = url.replace(String(server), hosts)
    t.strictSame(await readExport(t, several, 'a.ndjson'), all, hosts)
  }
})

test('a server that goes away in the middle is reported in one line', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  await fill(store, 12_000)
  const opened = await view(t, url)
  const path = join(createDirectory(t), 'a.ndjson')
  let ended: Promise<unknown> | undefined
  const onProgress = () => {
    ended ??= store.sql.select(
      "SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%string_agg%' AND pid <> pg_backend_pid()",
    )
  }
  const options = { format: 'ndjson', compression: undefined, withId: true, after: 0, head: 12_000 } as const
  // Whichever page is under way when the session ends.
  const broken = (async () => {
    for (let round = 0; round < 100; round++)
      await exportToFile(path, opened, { ...options, replace: true, onProgress })
  })()
  await t.rejects(broken, { message: /^the database cannot be read: / })
  await ended
})

test('a file that the shell opened holds the export alone, wherever stderr goes', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  await fill(await open(t, DATABASE_URL), 10)
  for (const isShared of [false, true]) {
    const file = join(createDirectory(t), 'out')
    const out = openSync(file, 'w')
    const stdio: StdioOptions = ['ignore', out, isShared ? out : 'ignore']
    const child = spawn(process.execPath, [cli, 'export', '-'], {
      env: { ...inherited(), DATABASE_URL },
      stdio,
    })
    noteProcess(child)
    t.same(await once(child, 'exit'), [0, null])
    closeSync(out)
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    t.equal(lines.filter((line) => line.startsWith('{')).length, 10)
  }
})
