// import: which inputs are added, and which are refused. An input is checked as a whole before anything is added.
import { existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { test } from 'tap'
import { cli, runCommand, runShell, spawnCli } from '../support/commands.ts'
import { createDirectory, engines, sqlite, testPostgres } from '../support/engines.ts'
import { connect } from '../support/postgres.ts'
import { preload, spawnProgram } from '../support/processes.ts'
import { fixture, pipeImport, quickest, readPlants, shareStore, writeInput, written } from './imports.ts'

const good = '{"name":"a","tag":""}\n'
const long = 'x'.repeat(2 ** 21)
const bytes = (...parts: (string | number[] | Buffer)[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const flip = (buffer: Buffer, index: number) => {
  const flipped = Buffer.from(buffer)
  flipped[index] = (flipped.at(index) as number) ^ 1
  return flipped
}
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const a = [{ name: 'a', tag: '' }]
const any = '--ignore-unknown'

/** Valid inputs, the plants they add, as NAME/TAG/ID, and options. */
const sound: [input: string, plants: string[], ...options: string[]][] = [
  // CSV (RFC 4180), with different line ends.
  ['id,tag,name\n7,"a, ""b""",Fern\n8,x,Moss\n\n"",y,Oak\n', ['Fern/a, "b"/7', 'Moss/x/8', 'Oak/y']],
  ['name,tag\r\na,1\nb,2\r\nc,tag', ['a/1', 'b/2', 'c/tag']],
  ['name,tag,notes\na,,"x\n\ny, z"\nb,,\n', ['a/', 'b/'], any],
  ['name,tag\n"\ufeffa",\n', ['\ufeffa/']],
  // Other delimiters.
  ['name;tag;"x,y,z"\nFern;a,b;\n', ['Fern/a,b'], any],
  ['"x\ry",name,tag\n1,a,b\n', ['a/b'], '--ignore-unknown'],
  ['"x\n""y, z""";name;tag\n1;a;b\n', ['a/b'], '--ignore-unknown'],
  ['Sep=;\r\nname;tag\r\nFern;a,b\r\n', ['Fern/a,b']],
  ['name,x;tag,y\na;b\n', ['a/b'], '--delimiter', ';', '--map', 'name=name,x', '--map', 'tag=tag,y'],
  ['name,x\ttag\na\tb\n', ['a/b'], '--delimiter', 'tab', '--map', 'name=name,x'],
  ['Height "\tname\ttag\n5"\ta, b, c\tx\n', ['a, b, c/x'], any],
  // TAB and |: quotation marks in the text; a cell that begins with one, rows before a cell that ends with one.
  ['name\ttag\nFern\t9 "x 7\nMoss\tthe "wet" form\n', ['Fern/9 "x 7', 'Moss/the "wet" form']],
  ['name\ttag\tnote\na\t\t"see\nb\t\t\nc\t\t\nd\t\tend"\n', ['a/', 'b/', 'c/', 'd/'], any],
  ['x\ty\tname\ttag\n"see\tbelow"\tFern\t"a ""b"""\n', ['Fern/a "b"'], any],
  ['id|x|tag|y\n37|Abies "alba|P|"wet" form\n', ['Abies "alba/P/37'], '--map', 'name=x'],
  ['name|tag\n"A|B"|"a ""b"""\n', ['A|B/a "b"']],
  ['name|tag\nC| "c"\n', ['C/ "c"']],
  ['name\ttag\tsize (")\tx\na\tb\t9"\tc, d, e, f\n', ['a/b'], any],
  // Spreadsheets and pandas.
  ['name,tag,\nA,1,x\n', ['A/1']],
  ['\ufefftag,name,,\n"a,b",Fern,,\n', ['Fern/a,b']],
  ['name,tag,id\na\nb,x\n', ['a/', 'b/x']],
  [',name,tag,notes,,notes\n0,a,,x,y,z\n', ['a/'], any],
  ['name,tag,id\na,,117.0\nb,,118.000\n', ['a//117', 'b//118']],
  // Options.
  ['"name", "tag"\n"a",\t "b, c" \n', ['a/b, c'], '--trim'],
  [' name ,tag,id\n a ,\u00a0b, 17 \n', ['a/b/17'], '--trim'],
  ['name,tag\n"a"\u00a0,\u00a0 "b, c"\n', ['a/b, c'], '--trim'],
  ['name\ttag\n\u00a0"a"\tb\n', ['a/b'], '--trim'],
  ['name,tag\n"a,9 "x 7\n', ['"a/9 "x 7'], '--quote', 'none'],
  ['{"common":"a","tag":"","other":[{}],"no":27}\n', ['a//27'], '--map', 'name=common', '--map', 'id=no'],
  // JSON.
  ['{"name":"a","tag":"","synonyms":[{}]}\n', ['a/'], any],
  ['{"known":[],"name":"a","tag":""}\n{"tag":"","name":"b","known":["c"]}\n', ['a/', 'b/'], any],
  ['{"name": "a", "tag": "\\u00e9\\ud83c\\udf34"}\r\n\r\n\n {"tag":"b","name":"c"} ', ['a/é🌴', 'c/b']],
  ['[{"name":"]},","tag":"\\"\\\\"},{"name":"[{","tag":"é"}]', [']},/"\\', '[{/é']],
  ['{"name":"a","tag":"","id":999}\n'.repeat(2), ['a//999']],
  [`[{"name":"a",${' '.repeat(500_000)}"tag":""} ]`, ['a/']],
  [' [ ] \n', []],
  ['name,tag\n', []],
]

test('imports each valid input', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  for (const [input, plants, ...options] of sound) {
    const { code, said, plants: added } = await next(writeInput(t, input), '--again', ...options)
    const found = added.map((plant) => Object.values(plant).join('/'))
    t.strictSame(found, plants, input)
    t.strictSame([code, ...said], plants.length === 0 ? [0, 'input: no new plants'] : [0])
  }
})

const gzipped = gzipSync(good.repeat(9999))
const zstd = zstdCompressSync(good.repeat(9999), { params: { [constants.ZSTD_c_checksumFlag]: 1 } })
const not1252 = /^input: line 2: is not UTF-8; .* iconv -f windows-1252 -t utf-8 FILE$/

/** Inputs that are refused as a whole, and the reason. */
const refused: [input: string | Buffer, reason: RegExp, ...options: string[]][] = [
  ['', /^input: is empty, or starts with 128 KiB of white space$/],
  ['\n'.repeat(2 ** 18) + good, /^input: is empty, or starts with 128 KiB of white space$/],
  [
    '{"a": [{"name":"a"}]}\n',
    /contains the array "a"; convert it with: jq -c '\.\. \| \.\["a"\]\? \| arrays \| \.\[\]' FILE$/,
  ],
  ['{"a":[]}', /contains the array "a"; convert it with: jq /],
  ['{\n  "n": 1,\n  "a": [\n    {"name":"b"}\n  ]\n}\n', /contains the array "a"; convert it with: jq /],
  ['{"meta":{"n":{"x":1}},\n "größe":[{"name":"a"}]}\n', /contains the array "größe"; convert it/],
  [`${good.trim()},\r\n${good}`, /end in a comma; convert it with: sed 's\/,\[\[:space:\]\]\*\$\/\/' FILE$/],
  [
    '{\r\n  "name": "a",\r\n  "tag": ""\r\n}\r\n',
    /is JSON over several lines; convert it with: jq -c \. FILE$/,
  ],
  [bytes([0xff, 0xfe], utf16('name,tag\n')), /^input: is UTF-16; .*: iconv -f utf-16le -t utf-8 FILE$/],
  [bytes([0xfe, 0xff], [0, 0x7b]), /iconv -f utf-16be/],
  [utf16('name,tag\na,b\n'), /iconv -f utf-16le/],
  [latin1('name,tag\ngr\xfcn,\n'), not1252],
  [latin1('\xef\xbb\xbfname,t\xe9\na,\n'), /^input: line 1: the header row: is not UTF-8$/],
  [latin1(`${good}{"name":"\x93gr\xfcn\x94"}\n`), not1252],
  [latin1('[\n{"name":"gr\xfcn","tag":""}]'), not1252],
  [bytes(good, '{"name":"', [0xc0, 0xaf], '","tag":""}\n'), not1252],
  [bytes(good, '{"name":"b', [0xf0, 0x9f]), not1252],
  ['name,tag\ra,b\r', /^input: has lines that end in CR; convert it with: tr '\\r' '\\n' < FILE$/],
  ['name,tag\ra,b\rc,d\n', /^input: has lines that end in CR/],
  ['name,tag,x\ra,b,\rc,d,"\n"\re,f,\r', /^input: has lines that end in CR/, '--ignore-unknown'],
  ['name,tag,x\ra,b,\rc,d,\ne,f,\n', /^input: has lines that end in CR/, '--ignore-unknown'],
  [latin1('\xfd7zXZ\0\0\x04'), /^input: is compressed; decompress it with xz -dc/],
  [latin1('BZh91AY&SY'), /^input: is compressed; .*bzip2 -dc$/],
  [latin1('SQLite format 3\0\x10\0'), /^input: is not a text file: save it as CSV/],
  [bytes('PK\x03\x04', [20, 0, 6, 0], '[Content_Types].xml'), /^input: is a ZIP archive \(XLSX, ODS\): /],
  [gzipped.subarray(0, -4), /^input: the gzip data is truncated$/],
  [flip(gzipped, gzipped.length - 6), /the gzip data cannot be decompressed: incorrect data check/],
  [bytes(gzipped, 'junk'), /the gzip data cannot be decompressed/],
  [bytes(gzipped, [0], gzipped), /the gzip data cannot be decompressed/],
  [zstd.subarray(0, -2), /^input: the zstd data is truncated$/],
  [flip(zstd, zstd.length - 1), /the zstd data cannot be decompressed: .*checksum/],
  [bytes(zstd, 'junk'), /the zstd data cannot be decompressed/],
  [
    Buffer.from('28b52ffd00a8010000', 'hex'),
    /: the zstd data cannot be decompressed: Frame requires too much memory/,
  ],
  [`[${good},\n{"name":"${long}"}]`, /^input: line 3: is longer than 1024 KiB$/],
  [`name,${long}\n`, /^input: line 1: is longer than 1024 KiB$/],
  [`[${good},\n{"na`, /^input: line 3: the JSON array does not end: the input is truncated$/],
  [`[${good},{"name":"b,\n"tag":""}]`, /^input: line 2: the JSON array does not end/],
  [`\n \n[${good}]\n[]`, /^input: line 5: text follows the JSON array$/],
  [`[${good}]\n["${long}"]`, /^input: line 3: text follows the JSON array$/],
  ['Lorem ipsum\n', /line 1: no column "name" for name; use --map name=COLUMN with one of: "Lorem ipsum"$/],
  ['sep=;', /line 1: no column "name" for name/],
  ['name,tags\na,b\n', /^input: line 1: no column "tag" for tag;/],
  ['name,tag\n', /^input: line 1: no column "no" for id;/, '--map', 'id=no'],
  ['name,tag,a,b\n1,2,3,4\n', /^input: line 1: unknown columns: "a","b"; --ignore-unknown ignores them$/],
  ['\n\nname,tag,name\na,b,c\n', /^input: line 3: duplicate column "name"$/],
]

test('refuses an unreadable input with one sentence, and creates no database', async (t) => {
  const directory = createDirectory(t)
  const DATABASE_URL = `file:${directory}/plants.db`
  for (const [input, reason, ...options] of refused) {
    const path = writeInput(t, input)
    const ran = await runCommand(['import', path, '--skip-invalid', ...options], { DATABASE_URL })
    t.match(ran, { code: 1, stdout: '' }, String(reason))
    t.match(ran.stderr, /^plant-store: [^\n]+\n$/)
    t.match(ran.stderr.replaceAll(path, 'input').slice('plant-store: '.length, -1), reason)
  }
  for (const [path, stderr] of [
    [directory, /^plant-store: \S+: EISDIR[^\n]+\n$/],
    ['postgres://a:secret@b', /^plant-store: postgres:..a:\*\*\*@b: ENOENT[^\n]+ 'postgres:..a:\*\*\*@b'\n$/],
  ] as const)
    t.match(await runCommand(['import', path], { DATABASE_URL }), { code: 1, stdout: '', stderr })
  t.strictSame(readdirSync(directory), [])
})

const [open, inside, again, joined] = [
  /a quoted cell starts here and does not end/,
  /^a quotation mark is inside a cell/,
  /repeats the header row$/,
  /starts with a byte/,
]
const taken = 'a plant with this id already exists with a different name or tag'

/** Inputs with faults by line, and the file of rejects (undefined: the whole input). */
const faulty: [
  input: string | Buffer,
  faults: Record<number, RegExp | string>,
  rejects?: string | undefined,
  ...options: string[],
][] = [
  ['{"name":\n', { 1: 'is not JSON' }],
  [`${good}{"name":"b","ta`, { 2: 'is not JSON' }, '{"name":"b","ta'],
  ['{"name":"b","tags":[]}\n{"name":"a","tag":""}\n', { 1: /^tag is required/ }, '{"name":"b","tags":[]}\n'],
  ['{"name":"b\\u0000","tag":""}\n', { 1: /^name must not contain control characters/ }],
  ['{"name":"\\ud800","tag":""}\n', { 1: 'name must not contain lone surrogates' }],
  ['{"name":"a","tag":"","id":9007199254740993}\n', { 1: 'id must be at most 9007199254740991' }],
  ['{"name":"a","tag":"","id":"7"}\n', { 1: 'id must be an integer' }],
  ['name,tag,id\nb,,007\na,,7.5\n', { 2: 'id must be an integer', 3: 'id must be an integer' }],
  ['name,tag,id\nb,,99999999999999999999\n', { 2: 'id must be at most 9007199254740991' }],
  ['name,tag,id\nb,,-1.0\n', { 2: 'id must be at least 0' }],
  ['{"name":"a","tag":"","x~/y":1}\n', { 1: 'x~0~1y is not a known member' }],
  [`{"name":"${'é'.repeat(256)}","tag":""}\n`, { 1: /^name must have at most 255 char/ }],
  ['{}\n7\n[]\n', { 1: 'name is required; tag is required', 2: 'must be an object', 3: 'must be an object' }],
  // Not refused with a command, because the quotation mark would end its argument.
  [`{"a'b":[{"name":"c"}]}\n`, { 1: /^name is required/ }],
  ['[null]', { 1: 'must be an object' }, '[\nnull\n]\n', any],
  ['{"tag":""}\n', { 1: 'name is required' }, undefined, '--map', 'name=valueOf'],
  ['[{"name":"b\n"}]', { 1: 'is not JSON' }, '[\n{"name":"b\n"}\n]\n'],
  ['[{} {},\n,\n7]', { 1: 'is not JSON', 2: 'is not JSON', 3: 'must be an object' }, '[\n{} {},\n,\n7\n]\n'],
  ['name,tag\nb,,,c\n', { 2: 'has 4 cells, but the header row has 2' }],
  ['name,tag\n"",a\n,b\n', { 2: /^name must have at least/, 3: /^name must have at least/ }],
  ['name,tag\n"a\nb",\n', { 2: /^name must not contain control characters/ }],
  ['name,tag\na\rb,1\n', { 2: /^name must not contain control characters/ }],
  // In an input with valid UTF-8.
  [latin1('\xef\xbb\xbfname,tag\nb\xe9,\n'), { 2: 'is not UTF-8' }, 'name,tag\nb\ufffd,\n'],
  [latin1('name,tag\n\xc3\xa9,\nb\xe9,\n'), { 3: 'is not UTF-8' }, 'name,tag\nb\ufffd,\n'],
  // An unclosed quoted cell: alone, after a closed one, and in a long input.
  ['name,tag\na,\n"b,\nc,\nd,\n', { 3: open }, 'name,tag\n"b,\n'],
  ['name,tag,notes\na,,"x\ny"\nb,,"z",\nc,,"d\n', { 5: open }, 'name,tag,notes\nc,,"d\n', any],
  [`name,tag\n"b,\n${`${'c'.repeat(200)},\n`.repeat(6000)}`, { 2: open }, 'name,tag\n"b,\n'],
  // A quotation mark inside a cell, whose lines are not rows; but not one that begins another cell.
  ['name,tag\nb"c",\nd,\n', { 2: inside }, 'name,tag\nb"c",\n'],
  ['name,tag\nb,"c\nd\n3" e\na,\n', { 4: inside }, 'name,tag\nb,"c\nd\n3" e\n'],
  ['name,tag,x\nb,, "c\nd\ne"\na,,\n', { 4: inside }, 'name,tag,x\nb,, "c\nd\ne"\n', any],
  ['name,tag\nb,"c\n"d",e\n', { 2: inside }, 'name,tag\nb,"c\n'],
  ['name,tag\nb, "c\nd,\ne, "f"\n', { 2: inside }, 'name,tag\nb, "c\n', '--trim'],
  ['name,tag\nb,"c\na,\nd,5"" e\n', { 2: open, 4: inside }, 'name,tag\nb,"c\nd,5"" e\n'],
  // The last line has no end, and a pair of marks is in two chunks.
  ['name,tag\na,\nb, "c, d"', { 3: inside }, 'name,tag\nb, "c, d"'],
  [`name,tag\nb,"${'c'.repeat(131_058)}\n""\nd,\n3" e\n`, { 5: inside }],
  // Files that were joined.
  ['name,tag\na,\nname,tag\nb,\n', { 3: again }, 'name,tag\nname,tag\n'],
  [
    'sep=;\nname;tag\na;\nsep=;\nname;tag\nSep=;',
    { 4: /^repeats the separator line/, 5: again, 6: /^repeats the separator line/ },
    'sep=;\nname;tag\nsep=;\nname;tag\nSep=;',
  ],
  ['name,tag,,\na,\n"name","tag"\nb,\n', { 3: again }, 'name,tag,,\n"name","tag"\n'],
  ['\ufeffname,tag\na,\n\ufeffname,tag\nb,\n', { 3: joined }, 'name,tag\n\ufeffname,tag\n'],
  [`${good}\ufeff${good}`, { 2: joined }, `\ufeff${good}`],
  [`${good.trim().padEnd(2 ** 17 - 1)}\n\ufeff${good}`, { 2: joined }, `\ufeff${good}`],
  // Ids.
  ['name,tag,id\na,,5\nb,,5\na,,5\n', { 3: taken }, 'name,tag,id\nb,,5\n'],
  ['No.,name,tag\n1,b,\n2,,\n', { 2: taken, 3: /^name must/ }, undefined, '--map', 'id=No.'],
  ['[{"name":"b","tag":"","id":1}]', { 1: taken }, '[\n{"name":"b","tag":"","id":1}\n]\n'],
  ['{"name":"b","tag":"","id":1}\n'.repeat(2), { 1: taken, 2: taken }],
]

test('reports each invalid record with its line, and adds nothing', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  await next(writeInput(t, '{"name":"a","tag":"","id":1}\n'))
  for (const [input, faults, rejected = input, ...options] of faulty) {
    const path = writeInput(t, input)
    const rejects = join(createDirectory(t), 'rejects')
    const reasons = Object.entries(faults).map(([line, reason]) => ({ line: Number(line), reason }))
    const refused = await next(path, ...options)
    t.match(refused, { code: 1, plants: [], counts: { added: 0, replayed: 0, reasons } }, path)
    t.equal((refused.counts.reasons as object[]).length, reasons.length)
    t.match(refused.said.pop(), /^plant-store: input: nothing was added: .+; --skip-invalid adds the others$/)
    t.equal(refused.said.length, reasons.length)
    const skipped = await next(path, '--skip-invalid', '--rejects', rejects, '--again', ...options)
    t.match(skipped, { code: 1, counts: { reasons } }, skipped.said.join())
    t.equal(skipped.plants.length, skipped.counts.added)
    t.equal(readFileSync(rejects, 'utf8'), rejected)
  }
})

const codings: Record<string, (text: string) => Buffer> = {
  plain: (text) => Buffer.from(text),
  gzip: (text) => gzipSync(text),
  'gzip in two members': (text) => Buffer.concat([gzipSync(text.slice(0, 999)), gzipSync(text.slice(999))]),
  zstd: (text) => zstdCompressSync(text),
  'zstd after a skippable frame': (text) =>
    Buffer.concat([Buffer.from('5f2a4d180400000000000000', 'hex'), zstdCompressSync(text)]),
  'zstd in two frames': (text) =>
    Buffer.concat([zstdCompressSync(text.slice(0, 999)), zstdCompressSync(text.slice(999))]),
  'UTF-8 with a byte order mark': (text) => Buffer.from(`\ufeff${text}`),
}

for (const engine of engines)
  test(`${engine.name}: imports every format in every coding`, async (t) => {
    const { next } = await shareStore(t, await engine.createDatabase(t))
    // Codings do not depend on the engine or format.
    for (const [format, write] of Object.entries(written))
      for (const [coding, encode] of Object.entries(codings)) {
        if (coding !== 'plain' && (engine !== sqlite || format !== 'csv')) continue
        const { code, counts, plants } = await next(writeInput(t, encode(write(fixture))), '--again')
        t.match({ code, ...counts }, { code: 0, added: 625, rejected: 0 }, `${format}, ${coding}`)
        t.strictSame(plants, fixture)
      }
  })

test('imports frames of zstd that are decoded faster than their plants are added', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const frame = (from: number) =>
    zstdCompressSync(Array.from({ length: 20_000 }, (_, n) => writeLine(from + n)).join(''))
  const writeLine = (id: number) => `{"name":"P${id}","tag":"t${(id * 7919) % 10_007}","id":${id}}\n`
  const { code, counts } = await next(writeInput(t, bytes(frame(0), frame(20_000), frame(0), frame(20_000))))
  t.match({ code, ...counts }, { code: 0, added: 40_000, replayed: 40_000, rejected: 0 })
})

test('imports corrected rejects, which have the form of the input', async (t) => {
  const inputs: [input: string, rejects: string][] = [
    ['sep=;\nname;tag;id;;\na;;1\nb;;1\n"";c;;;\n', 'sep=;\nname;tag;id;;\nb;;1\n"";c;;;\n'],
    ['name,tag,id\r\na,,1\r\nb,,1\r\n"",c,', 'name,tag,id\r\nb,,1\r\n"",c,'],
    [
      `[{"name":"a","tag":"","id":1},{"name":"b","tag":"","id":1},{\n"name":"",\n"tag":"c" } ]`,
      `[\n{"name":"b","tag":"","id":1},\n{\n"name":"",\n"tag":"c" }\n]\n`,
    ],
  ]
  for (const [input, expected] of inputs) {
    const { next } = await shareStore(t, await quickest.createDatabase(t))
    const rejects = join(createDirectory(t), 'rejects')
    await next(writeInput(t, input), '--skip-invalid', '--rejects', rejects)
    t.equal(readFileSync(rejects, 'utf8'), expected)
    t.match(await next(rejects, '--skip-invalid'), { code: 1, plants: [] })
    const mended = expected.replace(/(b.*)1/, '$12').replace(/^""|(?<="name":)""/m, '"d"')
    const { code, plants } = await next(writeInput(t, mended), '--rejects', `${rejects}-2`)
    t.notOk(existsSync(`${rejects}-2`), 'no file without faults')
    t.strictSame([code, plants.map(({ name }) => name)], [0, ['b', 'd']])
  }
})

test('writes the invalid records of a compressed input to stdout with --rejects -, and the counts to stderr', async (t) => {
  const rows = ['7,"b ""c"", d",x', '"8",,y', '9,"",\u00e9 '].map((row) => `${row}\r\n`)
  const path = writeInput(t, gzipSync(`id,"name",tag\r\n7,a,\n${rows.join('\n\r\n')}`))
  const args = ['import', path, '--skip-invalid', '--rejects', '-', '--json']
  const ran = await runCommand(args, { DATABASE_URL: await sqlite.createDatabase(t) })
  t.equal(ran.stdout, `id,"name",tag\r\n${rows.join('')}`)
  t.match(JSON.parse(ran.stderr.trimEnd().split('\n').at(-1) as string), {
    added: 1,
    conflicting: 1,
    rejected: 2,
    reasons: [{ line: 3, reason: /^a plant with this id/ }, { line: 6 }, { line: 9 }],
  })
})

test('refuses an existing file for rejects', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const path = writeInput(t, `{}\n${good}`)
  for (const [file, reason] of [
    ['/dev/full', /^plant-store: \/dev\/full is not a regular file$/],
    [join(createDirectory(t), 'no/rejects'), /cannot write \S+: its directory does not exist$/],
    [path, /^plant-store: input already exists$/],
  ] as const)
    t.match(await next(path, '--skip-invalid', '--rejects', file), { code: 1, plants: [], said: [reason] })
  t.equal(readFileSync(path, 'utf8'), `{}\n${good}`)
})

test('a dry run reports all faults, compares ids with an existing store, and creates no store', async (t) => {
  const dryRun = (path: string, DATABASE_URL: string, ...args: string[]) =>
    runCommand(['import', path, '--dry-run', ...args], { DATABASE_URL })
  for (const { createDatabase } of engines) {
    const url = await createDatabase(t)
    const path = writeInput(t, '{"name":"b","tag":"","id":1}\n')
    const nothing = ', 0 rejected; nothing was added to '
    t.match(await dryRun(path, url), { code: 0, stdout: `1 valid, 0 conflicting${nothing}` })
    await pipeImport(t, url, '{"name":"a","tag":"","id":1}\n')
    t.match(await dryRun(path, url), { code: 1, stdout: `0 valid, 1 conflicting${nothing}` })
  }
  const directory = createDirectory(t)
  t.match(await dryRun(writeInput(t, good), `file:${directory}/no/plants.db`), { code: 0 })
  t.strictSame(readdirSync(directory), [])
})

test('imports a pipe like a file', async (t) => {
  const url = await sqlite.createDatabase(t)
  t.match(await pipeImport(t, url, `${good}{}\n`), {
    code: 1,
    stderr: /^stdin: line 2: name is required; [^\n]+\nplant-store: stdin: nothing was added/,
  })
  const { stdout } = await pipeImport(t, url, `[${good}]`, '--json')
  t.match(JSON.parse(stdout), { added: 1, database: String })
  t.match(await pipeImport(t, url, `[${good}]`), {
    code: 0,
    stderr: 'stdin: 1 plant already imported\nstdin: no new plants\n',
  })
  t.strictSame(await readPlants(url), a)
})

/** Makes each read of a file give one byte, as from a slow pipe. */
const singleBytes = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const { createReadStream } = fs
  fs.createReadStream = (path) => createReadStream(path, { highWaterMark: 1 })
  syncBuiltinESMExports()`

test('detects the form and the coding of an input that arrives byte by byte', async (t) => {
  const [header, row] = ['name;tag\n', 'a;\n']
  const zstds = bytes(zstdCompressSync(header), zstdCompressSync(row))
  for (const input of [header + row, gzipSync(header + row), zstds]) {
    const env = { ...preload(singleBytes), DATABASE_URL: await sqlite.createDatabase(t) }
    const ran = await spawnCli(t, ['import', writeInput(t, input)], env).ended
    t.match(ran, { code: 0, stdout: /^1 added/, stderr: '' })
  }
})

/** Truncates a file before it is read for the second time. */
const cutInput = `
  import fs from 'node:fs'
  const { read } = fs
  let reads = 0
  fs.read = (...given) => {
    if (++reads === 2) fs.truncateSync(process.argv[3], 100)
    return read(...given)
  }`

test('refuses a file that is truncated while it is read, and creates no database', async (t) => {
  const database = join(createDirectory(t), 'plants.db')
  const env = { ...preload(cutInput), DATABASE_URL: `file:${database}` }
  const path = writeInput(t, `name,tag\n${'Alder,\n'.repeat(40_000)}`)
  const stderr = /input: was changed while it was read: run the same command again\n$/
  t.match(await spawnCli(t, ['import', path], env).ended, { code: 1, stderr })
  t.notOk(existsSync(database))
})

test('reports a compressed file that cannot be read to its end', async (t) => {
  const failing = cutInput.replace(/fs\.truncate.*/, "return given.at(-1)(Error('broken'))")
  const path = writeInput(t, gzipSync(good.repeat(9999), { level: 0 }))
  t.match(await spawnCli(t, ['import', path], preload(failing)).ended, {
    code: 1,
    stderr: /^plant-store: Error: broken/,
  })
})

test('names the temporary directory if it is full, leaves nothing in it, and creates no database', async (t) => {
  const [directory, TMPDIR] = [createDirectory(t), createDirectory(t)]
  const variables = [`DATABASE_URL=file:${directory}/plants.db`, `TMPDIR=${TMPDIR}`]
  // Limits each file to 1 MiB. Without the instruments of tap, which also write files.
  const limit = ['-i', ...variables, 'sh', '-c', 'ulimit -f 2048; exec "$0" "$@"']
  const input = `{"x":"${long.slice(0, 2 ** 20 - 9)}"}\n`.repeat(20)
  const full = await spawnProgram(t, 'env', [...limit, process.execPath, cli, 'import', '-'], { input }).ended
  t.equal(full.code, 1)
  t.match(full.stderr, `plant-store: cannot use a temporary file in ${TMPDIR} (TMPDIR): `)
  t.strictSame([...readdirSync(TMPDIR), ...readdirSync(directory)], [])
})

test('shows at most ten faults on a terminal', async (t) => {
  const path = writeInput(t, '{}\n'.repeat(12))
  const script = `stty cols 200; '${process.execPath}' '${cli}' import '${path}' --dry-run`
  const { stdout: shown } = await runShell(t, `script -qec "${script}" /dev/null`)
  t.equal(shown.match(/: line \d+: /g)?.length, 10)
})

test('reads an endless line in bounded memory, even if compressed to a kilobyte', async (t) => {
  const hugeBytes = 3 * 2 ** 26
  const huge = writeInput(t, good)
  truncateSync(huge, hugeBytes)
  const bomb = writeInput(t, gzipSync(bytes(good, '{', Buffer.alloc(hugeBytes, ' '), '\n')))
  const report = `process.on('exit', () => console.error(fs.readFileSync('/proc/self/status', 'utf8')))`
  for (const path of [huge, bomb]) {
    const DATABASE_URL = await sqlite.createDatabase(t)
    const env = { ...preload(`import fs from 'node:fs'; ${report}`), DATABASE_URL }
    const { stderr } = await spawnCli(t, ['import', path], env).ended
    t.match(stderr, /line 2: is longer than 1024 KiB/)
    const most = Number(/^VmHWM:\s+(\d+)/m.exec(stderr)?.[1]) / 1024
    t.ok(most < 256, `${most} MiB`)
  }
})

test('reports a faulty row as a whole, wherever a read ends', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const [start, row] = ['name,tag,x\n', '\u00a0"two\nlines",x"y,b,c\n']
  for (let cut = 1; cut < row.length; cut++) {
    const filling = `a,,${'z'.repeat(128 * 1024 - start.length - 4 - cut)}\n`
    const path = writeInput(t, start + filling + row)
    const { counts, plants } = await next(path, '--skip-invalid', '--trim', any)
    t.match(counts, { added: 1, rejected: 1, reasons: [{ line: 4 }] }, `after ${cut} bytes`)
    t.equal(plants.length, 1)
  }
})

test('refuses a quoted cell over 1 MiB, whatever precedes it', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const cell = `"${`${'x'.repeat(99)}\n`.repeat(11_000)}"`
  for (const before of [0, 25_000, 31_000]) {
    const path = writeInput(t, `name,tag,x\n${'a,,\n'.repeat(before)}b,,${cell}\n`)
    t.match((await next(path, '--skip-invalid', any)).counts, { added: before + 10_999, rejected: 2 })
  }
  for (const shift of ['', 'a', 'aa', 'aaa', 'aaaa']) {
    const path = writeInput(t, `name,tag\n${shift},"b\n${'x,""\n'.repeat(250_000)}`)
    const { counts } = await next(path, '--skip-invalid', '--dry-run')
    t.match(counts, { valid: 250_000, rejected: 1 }, 'whatever is at the bound')
  }
})

test('decodes characters that are split between two reads', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const tree = '山🌴'.repeat(40)
  for (const spaces of ['', ' ', '  ', '   ']) {
    const line = `${JSON.stringify({ name: tree, tag: 'é' })}\n`
    const { said, plants } = await next(writeInput(t, spaces + line.repeat(900)))
    t.strictSame(said, [])
    t.strictSame(new Set(plants.map(({ name, tag }) => name + tag)), new Set([`${tree}é`]))
    t.equal(plants.length, 900)
  }
})

testPostgres('creates tables next to others only with --create', async (t, DATABASE_URL) => {
  const path = writeInput(t, good)
  await (await connect(t, DATABASE_URL)).query('CREATE TABLE users (name text)')
  t.match(await runCommand(['import', path], { DATABASE_URL }), { code: 1, stderr: /users.*--create/ })
  const made = await runCommand(['import', path, '--create'], { DATABASE_URL })
  t.match(made, { code: 0, stdout: /^1 added, 0 replayed, 0 conflicting, 0 rejected; into .+\n$/ })
})
