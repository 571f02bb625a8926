// import: inputs that are broken. Each is one clear line with the place; what is sound before it is added, and nothing
// else.
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, createGzip, gzipSync, zstdCompressSync } from 'node:zlib'
import { test } from 'tap'
import type { ImportOptions } from '../../src/maintenance/import/import-options.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { skipUnlessOthersEnter } from '../support/tools.ts'
import { cli, open as openUrl, readPlants, runImport, runProgram, shareStore, writeInput } from './imports.ts'

/** More than the memory that an import may take, in full far more. */
const hugeBytes = isFull ? 2 ** 30 : 3 * 2 ** 26
const isRoot = process.getuid?.() === 0

const good = '{"name":"a","tag":""}\n'
const csv = 'name,tag\na,\n'
const long = 'x'.repeat(70_000)
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const flip = (buffer: Buffer, index: number) => {
  const flipped = Buffer.from(buffer)
  flipped[index] = (flipped.at(index) as number) ^ 1
  return flipped
}
const gzipped = gzipSync(good.repeat(9999))
const zstd = zstdCompressSync(good.repeat(9999), { params: { [constants.ZSTD_c_checksumFlag]: 1 } })

type Broken = [
  title: string,
  input: string | Buffer,
  /** Of the whole import, or of the one record that is rejected. */
  reason: RegExp,
  /** How many plants. */
  added: number,
  options?: Partial<ImportOptions>,
]

/** The import ends there. */
const fatal: Broken[] = [
  ['gzip that is cut short', gzipped.subarray(0, -20), /^input: the gzip data is cut short$/, 0],
  ['gzip without its last bytes', gzipped.subarray(0, -4), /^input: the gzip data is cut short$/, 0],
  ['a gzip header alone', gzipped.subarray(0, 5), /^input: the gzip data is cut short$/, 0],
  [
    'gzip with a wrong checksum',
    flip(gzipped, gzipped.length - 6),
    /the gzip data is damaged: incorrect data check/,
    0,
  ],
  ['gzip with something after it', bytes(gzipped as never, 'junk'), /the gzip data is damaged/, 0],
  ['zstd that is cut short', zstd.subarray(0, -2), /^input: the zstd data is cut short$/, 0],
  ['zstd with a wrong checksum', flip(zstd, zstd.length - 1), /the zstd data is damaged: .*checksum/, 0],
  ['zstd with something after it', bytes(zstd as never, 'junk'), /the zstd data is damaged/, 0],
  ['UTF-16', bytes([0xff, 0xfe], [0x7b, 0, 0x7d, 0]), /^input, line 1: is UTF-16, expected UTF-8$/, 0],
  ['UTF-16 of the other kind', bytes([0xfe, 0xff], [0, 0x7b]), /^input, line 1: is UTF-16/, 0],
  [
    'UTF-16 without a mark',
    bytes([0x6e, 0, 0x61, 0]),
    /^input, line 1: is not text: expected NDJSON, JSON or CSV/,
    0,
  ],
  ['a picture', bytes([0x89], 'PNG\r\n', [0x1a, 10, 0, 0]), /^input, line 1: is not text/, 0],
  [
    'an element that is too long',
    `[{"name":"a","tag":""},\n{"name":"${long}"}]`,
    /^input, line 2: the element that begins here is longer than 64 KiB$/,
    1,
  ],
  [
    'an element that does not end',
    `[{"name":"a","tag":""},\n{"name":"${long}`,
    /^input, line 2: the element that begins/,
    1,
  ],
  [
    'deep JSON',
    `[{"name":"a","tag":""},\n${'['.repeat(70_000)}`,
    /^input, line 2: the element that begins here is longer/,
    1,
  ],
  [
    'an array that is cut short',
    '[{"name":"a","tag":""}\n,\n{"na',
    /^input, line 3: the JSON array does not end: the input is cut short$/,
    1,
  ],
  [
    'an array that ends with a comma',
    '[{"name":"a","tag":""},\n]',
    /^input, line 2: expected an element before "]"$/,
    1,
  ],
  [
    'an array with two commas',
    '[{"name":"a","tag":""},\n,{}]',
    /^input, line 2: expected an element before ","$/,
    1,
  ],
  ['an array that only begins', '[\n', /^input, line 2: the JSON array does not end/, 0],
  ['an array that begins with a comma', '[,{}]', /^input, line 1: expected an element before ","$/, 0],
  [
    'something after an array',
    '[{"name":"a","tag":""}]\n[]',
    /^input, line 2: text follows the JSON array$/,
    1,
  ],
  [
    'a string without an end in an array',
    '[{"name":"a","tag":""},\n{"name":"b,\n"tag":""}]',
    /^input, line 2: the JSON array does not end/,
    1,
  ],
  [
    'an object that should be an array',
    '{"name":"a","tag":""}',
    /^input, line 1: is not a JSON array$/,
    0,
    { format: 'json' },
  ],
  ['nothing that should be an array', ' ', /^input: is empty, expected a JSON array$/, 0, { format: 'json' }],
  ['nothing that should be CSV', '', /^input: is empty, expected a header row$/, 0, { format: 'csv' }],
  [
    'text',
    'Lorem ipsum\n',
    /^input, line 1: there is no column "name" for the name; --map name=COLUMN names one of: "Lorem ipsum"$/,
    0,
  ],
  ['CSV without a tag', 'name,tags\na,b\n', /^input, line 1: there is no column "tag" for the tag/, 0],
  [
    'CSV with more columns',
    'name,tag,a,b\n1,2,3,4\n',
    /^input, line 1: a plant has no field for: "a", "b"; --ignore-unknown/,
    0,
  ],
  [
    'CSV with very many columns',
    `name,tag${',x1,y1'.repeat(1)}${Array.from({ length: 30 }, (_, n) => `,c${n}`).join('')}\n`,
    /: "x1", "y1", "c0", .*, "c17", …; --ignore-unknown leaves them out$/,
    0,
  ],
  [
    'CSV with a column twice',
    '\n\nname,tag,name\na,b,c\n',
    /^input, line 3: the column "name" is there twice$/,
    0,
  ],
  [
    'a mapped column that is not there',
    csv,
    /^input, line 1: there is no column "no" for the id/,
    0,
    { map: { id: 'no' } },
  ],
  [
    'a header row that is no UTF-8',
    bytes('name,tag,gr', [0xfc], 'n\n'),
    /^input, line 1: the header row is not UTF-8; convert the input, .*iconv/,
    0,
  ],
  [
    'a header row that is too long',
    long,
    /^input, line 1: is longer than 64 KiB; is a quote left open\?$/,
    0,
  ],
  [
    'a line that is cut short',
    `${good}{"name":"b","ta`,
    /^input, line 2: the last record is cut short, as it has no/,
    1,
  ],
  [
    'a row that is cut short',
    `${csv}b`,
    /^input, line 3: the last record is cut short, .* has 1 cell, the header/,
    1,
  ],
  [
    'a character that is cut short',
    bytes(good, '{"name":"b', [0xf0, 0x9f]),
    /^input, line 2: the last record .* is not UTF-8/,
    1,
  ],
  [
    'a line that is too long and is cut short',
    `${good}{"name":"${long}`,
    /^input, line 2: .*is longer than 64 KiB$/,
    1,
  ],
  ['a quote that is not closed', `${csv}"b,\nc,\n`, /^input, line 3: a quote is not closed$/, 1],
  [
    'a quote that is not closed for long',
    `${csv}"b,\n${'c,\n'.repeat(30_000)}`,
    /^input, line 3: is longer than 64 KiB; is a quote left open\?$/,
    1,
  ],
  [
    'a row without an end',
    `${csv}${','.repeat(1e6)}`,
    /^input, line 3: is longer than 64 KiB; is a quote/,
    1,
  ],
  ['a row that is too long', `${csv}b,${long}\nc,\n`, /^input, line 3: is longer than 64 KiB; is a quote/, 1],
  [
    'a quote in the middle of a cell',
    `${csv}b"c",\n`,
    /^input, line 3: a quote is in the middle of a cell/,
    1,
  ],
  [
    'something after a closing quote',
    `${csv}"b"c,\n`,
    /^input, line 3: a closing quote is followed by more/,
    1,
  ],
]

/** The record is rejected, and the good one after it is added. */
const rejected: Broken[] = [
  ['a line that is no JSON', `{"name":\n${good}`, /^input, line 1: is not JSON$/, 1],
  ['a line that is too long', `{"name":"${long}"}\n${good}`, /^input, line 1: is longer than 64 KiB$/, 1],
  [
    'a line that fills several chunks',
    `{"name":"${long.repeat(9)}"}\n{"name":"${long.slice(0, 65_536)}"}\n${good}`,
    /^input, line 2: is longer than 64 KiB$/,
    1,
  ],
  ['white space', `{}\n \n${good}`, /^input, line 2: is empty, expected JSON$/, 1],
  ['NUL in JSON', `{"name":"\0","tag":""}\n${good}`, /^input, line 1: is not JSON$/, 1],
  [
    'NUL in CSV',
    'name,tag\nb\0,\na,\n',
    /^input, line 2: name must have no control characters/,
    1,
    { format: 'csv' },
  ],
  [
    'an escaped NUL',
    `{"name":"b\\u0000","tag":""}\n${good}`,
    /line 1: name must have no control characters/,
    1,
  ],
  [
    'a lone surrogate',
    `{"name":"\\ud800","tag":""}\n${good}`,
    /line 1: name must have no lone surrogates$/,
    1,
  ],
  ['a member twice', `{"name":"a","name":"b","tag":""}\n${good}`, /line 1: name must be given once$/, 1],
  [
    'an id that would be rounded',
    `{"name":"a","tag":"","id":9007199254740993}\n${good}`,
    /line 1: id must be at most 9007199254740991$/,
    1,
  ],
  ['an id that is text', `{"name":"a","tag":"","id":"7"}\n${good}`, /line 1: id must be an integer$/, 1],
  ['an id with a zero before it', 'name,tag,id\nb,,007\na,,\n', /line 2: id must be an integer$/, 1],
  ['an id that is too large', 'name,tag,id\nb,,99999999999999999999\na,,\n', /line 2: id must be at most/, 1],
  [
    'a member that is not known',
    `{"name":"a","tag":"","x~/y":1}\n${good}`,
    /line 1: x~0~1y is not an allowed member$/,
    1,
  ],
  [
    'a name that is too long',
    `{"name":"${'é'.repeat(256)}","tag":""}\n${good}`,
    /line 1: name must have at most 255 char/,
    1,
  ],
  ['a value that is no object', `{}\n7\n${good}`, /line 2: must be an object$/, 1],
  ['an array in NDJSON', `{}\n[]\n${good}`, /line 2: must be an object$/, 1],
  ['null', `[null,{"name":"a","tag":""}]`, /line 1: must be an object$/, 1],
  [
    'a string over two lines in an array',
    '[{"name":"b\n"},\n{"name":"a","tag":""}]',
    /line 1: is not JSON$/,
    1,
  ],
  ['brackets that do not match', '[{"name":[}],\n{"name":"a","tag":""}]', /line 1: is not JSON$/, 1],
  ['two elements without a comma', '[{} {},\n{"name":"a","tag":""}]', /line 1: is not JSON$/, 1],
  [
    'more empty lines than a record is long',
    `${csv}${'\r\n'.repeat(70_000)}b\n`,
    /^input, line 70003: has 1/,
    1,
  ],
  ['a row with too few cells', 'name,tag\nb\na,\n', /line 2: has 1 cell, the header row has 2$/, 1],
  ['a row with too many cells', 'name,tag\nb,,,c\na,\n', /line 2: has 4 cells, the header row has 2$/, 1],
  [
    'Latin-1 in JSON',
    bytes('{"name":"gr', [0xfc], 'n","tag":""}\n', good),
    /line 1: is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8$/,
    1,
  ],
  [
    'Latin-1 in CSV',
    bytes('name,tag\ngr', [0xfc], 'n,\na,\n'),
    /line 2: is not UTF-8; convert the input, /,
    1,
  ],
  [
    'Latin-1 in an array',
    bytes('[{"name":"gr', [0xfc], 'n","tag":""},{"name":"a","tag":""}]'),
    /line 1: is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8$/,
    1,
  ],
  [
    'a byte that is no UTF-8 beside characters of every length',
    bytes('{"name":"aé山🌴', [0xff], '","tag":""}\n', good),
    /line 1: is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8$/,
    1,
  ],
  [
    'a byte that is no UTF-8 after a replacement character that is',
    bytes('{"name":"\ufffd","tag":""}\n{"name":"', [0xff], '","tag":""}\n'),
    /line 2: is not UTF-8; convert the input, /,
    1,
  ],
  [
    'an overlong sequence',
    bytes('{"name":"', [0xc0, 0xaf], '","tag":""}\n', good),
    /line 1: is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8$/,
    1,
  ],
  [
    'a surrogate in UTF-8',
    bytes('{"name":"', [0xed, 0xa0, 0x80], '","tag":""}\n', good),
    /line 1: is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8$/,
    1,
  ],
]

test('an import ends where its input is broken', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const [title, input, reason, added, options] of fatal)
    await t.test(title, async (t) => {
      // Some begin alike.
      const { error, plants } = await next(writeInput(t, input), { restart: true, ...options })
      t.match(error?.message, reason)
      t.notMatch(error?.message, /\n/)
      t.equal(plants.length, added)
    })
})

test('of the records that are rejected the reasons of ten thousand are in the result', async (t) => {
  const path = writeInput(t, '{}\n'.repeat(10_001))
  const { result } = await runImport('file:never-opened.db', path, { dryRun: true })
  t.equal(result?.rejected, 10_001)
  t.equal(result?.reasons.length, 10_000)
})

test('a record that is broken is rejected, and the rest is added', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const [title, input, reason, added, options] of rejected)
    await t.test(title, async (t) => {
      const { error, said, plants } = await next(writeInput(t, input), { restart: true, ...options })
      t.error(error)
      t.match(said.at(-1), reason)
      t.equal(plants.length, added)
    })
})

/** Resolves to how much more memory the process took at most while the work was done. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss
  let most = before
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 10)
  await work().finally(() => clearInterval(timer))
  return Math.max(most, process.memoryUsage().rss) - before
}

test('an endless line, and one that was a kilobyte compressed, are rejected in little memory', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const huge = writeInput(t, '')
  const file = openSync(huge, 'w')
  writeSync(file, `${good}{"name":"`)
  ftruncateSync(file, hugeBytes)
  closeSync(file)
  appendFileSync(huge, '\n')
  for (const path of [huge, writeInput(t, await bomb())]) {
    const grown = await growth(async () => {
      const { said, plants } = await next(path, { restart: true })
      t.match(said, ['input, line 2: is longer than 64 KiB'])
      t.equal(plants.length, 1)
    })
    t.ok(grown < 128 * 2 ** 20, `${grown >> 20} MiB`)
  }
})

/** As many spaces after a good line. */
async function bomb(): Promise<Buffer> {
  const gzip = createGzip()
  const spaces = Buffer.alloc(2 ** 20, ' ')
  const write = async () => {
    gzip.write(`${good}{`)
    for (let i = 0; i < hugeBytes / spaces.length; i++)
      if (!gzip.write(spaces)) await new Promise((resolve) => gzip.once('drain', resolve))
    gzip.end('\n')
  }
  void write()
  return Buffer.concat(await gzip.toArray())
}

test('an unreadable input is reported in one line with exit code 1, with counts of zero and without making a database', async (t) => {
  const directory = createDirectory(t)
  const path = writeInput(t, good)
  const missing = join(directory, 'missing')
  const cases: [args: string[], reason: RegExp][] = [
    [[directory], /^plant-store: \S+: is a directory\n$/],
    [['--strict', directory], /^plant-store: \S+: is a directory\n$/],
    [[missing], /^plant-store: cannot read \S+missing: ENOENT[^\n]+\n$/],
    // Its beginning is no memory of the process.
    [['/proc/self/mem', '--format', 'csv'], /^plant-store: cannot read \/proc\/self\/mem: E\w+[^\n]+\n$/],
    [['/dev/zero'], /^plant-store: \/dev\/zero, line 1: is not text[^\n]+\n$/],
    [[join(path, 'x')], /^plant-store: cannot read \S+: ENOTDIR[^\n]+\n$/],
    [[writeInput(t, gzipped.subarray(0, -4))], /^plant-store: \S+: the gzip data is cut short\n$/],
    [[writeInput(t, 'name\n')], /^plant-store: \S+, line 1: there is no column "tag"[^\n]+\n$/],
  ]
  await Promise.all(
    cases.map(async ([args, reason], index) => {
      const DATABASE_URL = `file:${directory}/${index}.db`
      const refused = await runCommand(['import', ...args], { DATABASE_URL })
      t.match(refused, { code: 1, stdout: /^0 added, 0 replayed, 0 conflicting, 0 rejected/, stderr: reason })
      t.notOk(existsSync(join(directory, `${index}.db`)), String(args[0]))
    }),
  )
})

test('a file of rejects that cannot be written is reported in one line, and nothing more is added', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const [rejects, reason, added] of [
    ['/dev/full', /^cannot write \/dev\/full: ENOSPC[^\n]+$/, 1],
    [join(createDirectory(t), 'no/rejects'), /^cannot write \S+: ENOENT[^\n]+$/, 0],
  ] as const) {
    const path = writeInput(t, `${good}{}\n${good.repeat(9)}`)
    const { error, plants } = await next(path, { rejects, batchPlants: 2, restart: true })
    t.match(error?.message, reason)
    t.equal(plants.length, added)
  }
})

test('a file of rejects replaces no other file', async (t) => {
  const directory = createDirectory(t)
  const database = join(directory, 'plants.db')
  const path = writeInput(t, `{}\n${good}`)
  const rejects = join(directory, 'rejects')
  for (const file of [path, database]) {
    const { error } = await runImport(`file:${database}`, path, { rejects: file })
    t.match(error?.message, /^cannot write \S+: it exists; name another file$/)
  }
  t.equal(readFileSync(path, 'utf8'), `{}\n${good}`)
  t.strictSame(await readPlants(`file:${database}`), [])
  t.error((await runImport(`file:${database}`, writeInput(t, `{}\n${good}`), { rejects })).error)
  for (const options of [{}, { dryRun: true }, { restart: true }, { resume: true }]) {
    const other = await runImport(`file:${database}`, writeInput(t, `{"a":1}\n${good}`), {
      rejects,
      ...options,
    })
    t.match(
      other.error?.message,
      /^cannot write \S+: it (exists|is not as the import left it); name another file$/,
    )
    t.equal(readFileSync(rejects, 'utf8'), '{}\n')
  }
})

for (const engine of engines)
  test(`${engine.name}: a dry run whose rejects cannot be written ends`, async (t) => {
    const DATABASE_URL = await engine.createDatabase(t)
    await (await openUrl(DATABASE_URL)).close()
    const path = writeInput(t, `{}\n${good}`)
    const ran = await runCommand(['import', path, '--dry-run', '--rejects', path], { DATABASE_URL })
    t.match(ran, {
      code: 1,
      stderr: /^plant-store: cannot write \S+: it exists; name another file\n$/,
    })
  })

test('a full disk ends the import with one line; with room again it can be resumed', async (t) => {
  const directory = createDirectory(t)
  const DATABASE_URL = `file:${directory}/plants.db`
  const names = Array.from({ length: 10_000 }, (_, n) => `plant ${n}`)
  const path = writeInput(t, names.map((name) => `{"name":"${name}","tag":""}\n`).join(''))
  // 1 MiB for each file: SQLite is told that it may grow no further. Without the tests' instruments, which write, too.
  const limit = ['-i', `DATABASE_URL=${DATABASE_URL}`, 'sh', '-c', 'ulimit -f 1024; exec "$0" "$@"']
  const args = [cli, 'import', path, '--batch', '1000', '--patience', '0']
  const { code, stdout, stderr } = await runProgram(t, 'env', [...limit, process.execPath, ...args])
  t.match({ code, stdout }, { code: 1, stdout: /^[1-9][\d,]* added, / })
  t.match(
    stderr,
    /^plant-store: the import was cut short: [^\n]+; run the same command with --resume to go on\n$/,
  )
  const held = (await readPlants(DATABASE_URL)).length
  t.ok(held > 0 && held < names.length && held % 1000 === 0, `${held} plants`)
  t.match((await runImport(DATABASE_URL, path, { resume: true })).result, {
    added: names.length - held,
    skipped: held,
  })
  t.strictSame(
    (await readPlants(DATABASE_URL)).map(({ name }) => name),
    names,
  )
})

test('a pipe that cannot be copied for its check is reported in one line, and nothing is added', async (t) => {
  const url = await sqlite.createDatabase(t)
  const TMPDIR = createDirectory(t)
  // 16 KiB for each file. Without the tests' instruments, which write, too.
  const limit = ['-i', `DATABASE_URL=${url}`, `TMPDIR=${TMPDIR}`, 'sh', '-c', 'ulimit -f 32; exec "$0" "$@"']
  const args = [...limit, process.execPath, cli, 'import', '-', '--strict']
  const full = await runProgram(t, 'env', args, { input: good.repeat(4000) })
  const missing = { DATABASE_URL: url, TMPDIR: join(TMPDIR, 'missing'), input: good }
  const none = await runProgram(t, process.execPath, [cli, 'import', '-', '--strict'], missing)
  for (const ran of [full, none])
    t.match(ran, { code: 1, stderr: /^plant-store: cannot write \S+ \(TMPDIR\): E[^\n]+\n$/ })
  t.strictSame(await readPlants(url), [])
})

test('a dry run that breaks off is reported in one line', async (t) => {
  const input = join(createDirectory(t), 'cut.ndjson.gz')
  writeFileSync(input, gzipped.subarray(0, -20))
  const { code, stderr } = await runCommand(['import', input, '--dry-run'])
  t.same([code, stderr], [1, `plant-store: ${input}: the gzip data is cut short\n`])
})

test('an input without permission to read is reported in one line', {
  skip: isRoot && skipUnlessOthersEnter(),
}, async (t) => {
  const path = writeInput(t, good)
  chmodSync(path, 0)
  const user = isRoot ? ['setpriv', '--reuid', '65534', '--clear-groups'] : []
  // Without the tests' instruments, which that user may not use.
  const args = ['-i', ...user, process.execPath, cli, 'import', path, '--dry-run']
  if (isRoot) chmodSync(dirname(path), 0o755)
  const { code, stdout, stderr } = await runProgram(t, 'env', args)
  t.equal(code, 1)
  t.match(stdout, /^0 valid, 0 rejected in [^\n]+; nothing was added\n$/)
  t.match(stderr, /^plant-store: cannot read \S+: EACCES[^\n]+\n$/)
})
