// export: writes every plant as it is stored, in the order of the log.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { type Test, test } from 'tap'
import type { NewPlant } from '../../schemas/plant.ts'
import { writeNewFile } from '../../src/cli/new-file.ts'
import { cli, runCommand, runShell, spawnCli } from '../support/commands.ts'
import { fill } from '../support/copies.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { open } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { tamper } from './damage.ts'
import { fixture, quickest } from './imports.ts'

const odd: NewPlant[] = [
  { name: 'a "b" \\ }', tag: '}', id: 0 },
  { name: ' 山椒 🌿\u2028', tag: 'Sep=' },
  { name: 'a,b;c', tag: '\ufeff=1+1 ', id: Number.MAX_SAFE_INTEGER },
]

/** Exports into a new file of this name; resolves to its contents. */
async function readExport(t: Test, url: string, name: string, ...more: string[]): Promise<Buffer> {
  const path = join(createDirectory(t), name)
  const { code, stderr } = await runCommand(['export', path, '--quiet', ...more], { DATABASE_URL: url })
  if (code !== 0) throw new Error(stderr)
  return readFileSync(path)
}

for (const { name, createDatabase } of engines) {
  test(`${name}: exports what was added, in each format and coding`, async (t) => {
    const url = await createDatabase(t)
    const plants = [...fixture, ...odd]
    const { log } = await open(t, url)
    await log.append(plants.map(({ id, name, tag }) => ({ item: JSON.stringify({ name, tag }), id })))
    const lines = plants.map((plant) => `${JSON.stringify(plant)}\n`).join('')
    t.equal((await readExport(t, url, 'all.ndjson')).toString(), lines)
    t.equal(gunzipSync(await readExport(t, url, 'all.jsonl.GZ')).toString(), lines)
    const zstd = await readExport(t, url, 'all.zst')
    t.equal(zstdDecompressSync(zstd).toString(), lines)
    for (let at = 99; at < zstd.length; at += 99) {
      const read = async () => zstdDecompressSync(zstd.with(at, (zstd[at] as number) ^ 1)).toString()
      t.ok((await read().catch(() => lines)) === lines, `a flipped bit at ${at} is detected or harmless`)
    }
    const json = (await readExport(t, url, 'all.json')).toString()
    t.strictSame(JSON.parse(json), plants)
    t.equal(json.split('\n').length, plants.length + 3, 'a line per plant')
    const after = ['--after', String(fixture.length)]
    const csv =
      'name,tag,id\n"a ""b"" \\ }",},0\n 山椒 🌿\u2028,"Sep=",\n"a,b;c","\ufeff=1+1 ",9007199254740991\n'
    t.equal((await readExport(t, url, '.CSV', ...after)).toString(), csv)
    const marked = await readExport(t, url, 'odd.csv.gz', ...after, '--bom')
    t.equal(gunzipSync(marked).toString(), `\ufeff${csv}`, 'spreadsheets read it as UTF-8')
    const bare = odd.map(({ name, tag }) => ({ name, tag }))
    t.strictSame(JSON.parse((await readExport(t, url, 'bare.json', ...after, '--no-id')).toString()), bare)
  })

  test(`${name}: exports a snapshot of the log while plants are added`, async (t) => {
    const url = await createDatabase(t)
    const store = await open(t, url)
    await fill(store, 6000)
    const { ended } = spawnCli(t, ['export'], { DATABASE_URL: url })
    let over = false
    void ended.then(() => (over = true))
    for (let n = 0; !over; n++) await store.log.append([{ item: `{"name":"late ${n}","tag":""}`, id: n }])
    const { stdout, stderr } = await ended
    const head = Number(/the log ends at plant (\d+)\n$/.exec(stderr)?.[1])
    t.ok(head < (await store.log.head()).position, 'plants were added meanwhile')
    t.equal(stdout.split('\n').length - 1, head)
    const after = (await readExport(t, url, 'b.ndjson', '--after', String(head))).toString()
    t.equal(stdout + after, (await readExport(t, url, 'c.ndjson')).toString(), 'both parts equal the whole')
  })
}

const damages = {
  'a gap': 'DELETE FROM plants WHERE position = 1500',
  'an altered plant': `UPDATE plants SET item = '{"name":"b","tag":""}' WHERE position = 1500`,
}
for (const [title, statement] of Object.entries(damages))
  test(`does not export a log with ${title}, and leaves no file`, async (t) => {
    const url = await quickest.createDatabase(t)
    await fill(await open(t, url), 2000)
    await tamper(url, statement)
    const path = join(createDirectory(t), 'a.ndjson.gz')
    t.match(await runCommand(['export', path], { DATABASE_URL: url }), {
      code: 1,
      stderr: /^plant-store: plants 1001 to 2000 are damaged: see [^\n]+ verify\n$/,
    })
    t.strictSame(readdirSync(dirname(path)), [])
  })

test('does not replace a file created during the export', async (t) => {
  const path = join(createDirectory(t), 'a')
  const write = async (temporary: string) => [temporary, path].map((one) => writeFileSync(one, one))
  const { signal } = new AbortController()
  await t.rejects(writeNewFile(path, { signal }, write), { message: `${path} already exists` })
  t.equal(readFileSync(path, 'utf8'), path)
  t.strictSame(readdirSync(dirname(path)), ['a'])
})

test('replaces an existing file only with --force, and nothing but regular files', async (t) => {
  const url = await sqlite.createDatabase(t)
  await fill(await open(t, url), 3)
  const directory = createDirectory(t)
  const path = join(directory, 'a.ndjson')
  const run = (file: string, ...more: string[]) =>
    runCommand(['export', file, ...more], { DATABASE_URL: url })
  writeFileSync(path, 'precious')
  t.match(await run(path), { code: 1, stdout: '', stderr: `plant-store: ${path} already exists\n` })
  t.equal(readFileSync(path, 'utf8'), 'precious')
  t.match(await run(path, '--force'), { code: 0 })
  t.equal(readFileSync(path, 'utf8').split('\n').length, 4)
  mkdirSync(join(directory, 'b'))
  symlinkSync('nowhere', join(directory, 'c'))
  for (const special of [join(directory, 'b'), join(directory, 'c'), '/dev/null'])
    t.match(await run(special, '--force', '--format', 'csv'), {
      code: 1,
      stderr: `plant-store: ${special} is not a regular file\n`,
    })
  t.strictSame(readdirSync(directory).sort(), ['a.ndjson', 'b', 'c'])
})

test('exports to stdout or a file, and reports the end of the log', async (t) => {
  const url = await sqlite.createDatabase(t)
  await fill(await open(t, url), 50)
  const run = (...args: string[]) => runCommand(['export', ...args], { DATABASE_URL: url })
  const all = (await readExport(t, url, 'a.ndjson')).toString()
  const database = fileURLToPath(url)
  const summary = `exported 50 plants from ${database}; the log ends at plant 50\n`
  t.strictSame(await run(), { code: 0, stdout: all, stderr: summary })
  t.strictSame(await run('-', '--quiet'), { code: 0, stdout: all, stderr: '' })
  const path = join(createDirectory(t), 'new.csv.gz')
  const { stdout } = await run(path, '--after', '47', '--json')
  t.same(JSON.parse(stdout), { plants: 3, after: 47, head: 50, database, file: path, format: 'csv' })
  t.equal(gunzipSync(readFileSync(path)).toString().split('\n').length, 5)
  const json = await run('--format', 'json', '--json', '--no-id')
  t.match(JSON.parse(json.stdout), { length: 50 })
  t.equal((await run('--format', 'json', '--after', '50')).stdout, '[\n]\n')
  t.match(JSON.parse(json.stderr), { plants: 50, file: '-', format: 'json' })
  t.match(await run(path, '--force'), {
    stdout: `exported 50 plants from ${database} to ${path}; the log ends at plant 50\n`,
  })
  const bad: [args: string[], code: number, stderr: RegExp][] = [
    [['--after', '51'], 1, /^plant-store: the log ends at plant 50, before plant 51\n$/],
    [['--after', '-1'], 2, /from 0 to/],
    [['--format', 'xml'], 2, /ndjson, json, csv/],
    [['--bom'], 2, /--bom is for CSV/],
    [[join(dirname(path), '.xml.gz')], 2, /unknown ending \.xml of FILE: use \.ndjson, \.jsonl/],
  ]
  for (const [args, code, stderr] of bad) t.match(await run(...args), { code, stdout: '', stderr }, `${args}`)
  t.same(readdirSync(dirname(path)), ['new.csv.gz'], 'creates nothing')
  const dotted = join(t.testdir({ 'a.b': {} }), 'a.b', 'plants')
  t.match(await run(dotted), { code: 0 }, 'a directory has no ending')
  const good = [['plants.xml', '--format', 'csv'], ['plants', '--after', '50'], ['plants.gz']]
  for (const [name = '', ...options] of good)
    t.match(await run(join(dirname(path), name), ...options), { code: 0 }, name)
})

test('prints no progress between the plants, on a terminal or in a file with both streams', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const store = await open(t, DATABASE_URL)
  for (let n = 0; n < 10; n++) await fill(store, 20_000)
  const file = join(createDirectory(t), 'out')
  t.match(await runShell(t, `plant-store export >'${file}' 2>&1`, { DATABASE_URL }), { code: 0 })
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  t.equal(lines.filter((line) => line.startsWith('{')).length, 200_000)
  if (skipWithout('script')) return
  const onTerminal = (line: string) =>
    runShell(t, `script -qefc "'${process.execPath}' '${cli}' ${line}" /dev/null`, {
      DATABASE_URL,
      TERM: 'xterm',
    })
  t.notMatch((await onTerminal('export')).stdout, ' % · ')
  t.match((await onTerminal(`export ${file}.csv`)).stdout, ' % · ', 'an export to a file shows progress')
})
