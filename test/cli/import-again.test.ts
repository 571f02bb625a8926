// import: an input that comes a second time, because it has grown, was cut short, or was mended. Each plant is there once.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { noteKeys } from '../../src/maintenance/import/notes.ts'
import { count } from '../../src/runtime/count.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { until } from '../support/until.ts'
import {
  cli,
  open,
  pipeImport,
  readPlants,
  runImport,
  runProgram,
  shareStore,
  startProgram,
  writeInput,
} from './imports.ts'

const line = (name: string, more = {}) => `${JSON.stringify({ name, tag: '', ...more })}\n`
const namesIn = async (url: string) => (await readPlants(url)).map(({ name }) => name)

test('--resume of a small input that has grown adds only what is new, in each format', async (t) => {
  const growing: [before: string, after: string][] = [
    [line('a') + line('b'), line('a') + line('b') + line('c')],
    [line('a') + line('b').trimEnd(), line('a') + line('b') + line('c')],
    ['name,tag\na,\nb,\n', 'name,tag\na,\nb,\nc,\n'],
    ['name,tag\r\na,\r\nb,', 'name,tag\r\na,\r\nb,\r\nc,'],
    [`[${line('a')},${line('b')}]`, `[${line('a')},${line('b')},${line('c')}]`],
  ]
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  for (const [before, after] of growing) {
    const path = writeInput(t, before)
    const ends = [await next(path)]
    writeFileSync(path, after)
    for (let n = 0; n < 2; n++) ends.push(await next(path, { resume: true }))
    t.match(
      ends.map(({ result, plants }) => [result?.added, result?.skipped, plants.map(({ name }) => name)]),
      [
        [2, 0, ['a', 'b']],
        [1, 2, ['c']],
        [0, 3, []],
      ],
      after,
    )
  }
})

test('an input that begins like a finished one is another one, and the progress of both is kept', async (t) => {
  const url = await sqlite.createDatabase(t)
  const [short, long] = [writeInput(t, line('a')), writeInput(t, line('a') + line('b'))]
  for (const path of [short, long]) t.error((await runImport(url, path)).error)
  t.match((await runImport(url, short, { resume: true })).result, { added: 0, skipped: 1 })
  t.match((await runImport(url, long, { resume: true })).result, { added: 0, skipped: 2 })
  t.same(await namesIn(url), ['a', 'a', 'b'])
})

for (const { name, createDatabase } of engines)
  test(`${name}: a second import beside a running one is refused, whatever its options`, async (t) => {
    const url = await createDatabase(t)
    const store = await open(url)
    t.teardown(() => store.close())
    const head = Array.from({ length: 4000 }, (_, n) => line(`plant ${n}`)).join('')
    const { child, ended } = startProgram(t, ['import', '-', '--quiet', '--batch', '100'], url)
    child.stdin.write(head)
    await until(async () => (await store.log.head()).position > 0)
    for (const options of [{}, { resume: true }, { restart: true }])
      t.match((await runImport(url, writeInput(t, head), options)).error, {
        message: `an import of input is running, as process ${child.pid}: wait until it ends`,
      })
    child.stdin.end(line('last'))
    t.match(await ended, { code: 0, stdout: /^4,001 added/ })
    t.equal((await store.log.head()).position, 4001)
  })

test('an import is not running because another process has its number now', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, 'name,tag\na,\n"b,\n')
  t.match((await runImport(url, path)).error, { message: /a quote is not closed/ })
  const store = await open(url)
  const [[key = '', before = ''] = []] = await store.notes.read(noteKeys)
  const known = JSON.parse(before)
  t.equal(known.owner.pid, process.pid)
  const value = JSON.stringify({ ...known, owner: { ...known.owner, pid: process.ppid } })
  t.ok(await store.notes.change({ key, before, value }))
  await store.close()
  writeFileSync(path, 'name,tag\na,\n"b",\n')
  t.match(await runImport(url, path, { resume: true }), { result: { added: 1, skipped: 1 } })
  t.same(await namesIn(url), ['a', 'b'])
})

test('an import that another one overtakes as it begins looks again', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, 'name,tag\na,\n"b,\n')
  t.match((await runImport(url, path)).error, { message: /a quote is not closed/ })
  writeFileSync(path, 'name,tag\na,\n"b",\n')
  /** Opens the store; something else changes its first note between the first look at it and the next step. */
  const openOvertaken = async () => {
    const store = await open(url)
    const { read, change } = store.notes
    let looks = 0
    const readOnce: typeof read = async (prefix) => {
      const notes = await read(prefix)
      const [[key = '', before = ''] = []] = notes
      if (looks++ === 0)
        t.ok(await change({ key, before, value: JSON.stringify({ ...JSON.parse(before), at: 1 }) }))
      return notes
    }
    return { ...store, notes: { read: readOnce, change } }
  }
  const { result } = await runImport(url, path, { resume: true, openStore: openOvertaken })
  t.match(result, { added: 1, skipped: 1 })
  t.same(await namesIn(url), ['a', 'b'])
})

test('after a fault in the middle of a file, the corrected rest is imported with each plant once', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const path = writeInput(t, 'name,tag\na,\n,\nb,\n"c,\n')
  const run = (...args: string[]) => runCommand(['import', path, ...args], { DATABASE_URL })
  const broken = await run('--json')
  t.match(broken, {
    code: 1,
    stderr: /line 5: a quote is not closed; correct it, and run the same command with --resume to go on\n$/,
  })
  t.match(JSON.parse(broken.stdout), { added: 2, rejected: 1, skipped: 0, replayed: 0, conflicting: 0 })
  writeFileSync(path, 'name,tag\na,\n,\nb,\n"c",\nd,\n')
  const refused = await run()
  t.match(refused, {
    code: 1,
    stdout: /^0 added, 0 replayed, 0 conflicting, 0 rejected/,
    stderr:
      /: an import was cut short after 3 records, on 20\S+Z from \S+; --resume goes on there, --restart begins/,
  })
  const resumed = await run('--resume')
  t.match(resumed, {
    code: 0,
    stdout: /^2 added, 0 replayed, 0 conflicting, 0 rejected/,
    stderr: /: 3 records already imported\n/,
  })
  t.same(await namesIn(DATABASE_URL), ['a', 'b', 'c', 'd'])
  t.match(await run('--resume', '--restart'), { code: 2, stdout: '' })
})

test('with --strict all records are added, or none, from a file or a pipe', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  t.error((await runImport(DATABASE_URL, writeInput(t, line('there', { id: 1 })))).error)
  const good = line('a') + line('b', { id: 2 }) + line('there', { id: 1 })
  const bad: [title: string, input: string, said: RegExp, counts: object][] = [
    ['a reject', `${good}{}\n`, /line 4: name is required; tag is required/, { rejected: 1, conflicting: 0 }],
    [
      'an id that is taken',
      good + line('other', { id: 1 }),
      /line 4: id is the id of a plant/,
      { rejected: 0, conflicting: 1 },
    ],
    ['one id for two', good + line('c', { id: 2 }), /line 4: id is the id of a plant/, { conflicting: 1 }],
    ['a fault', `name,tag\na,\n"b`, /line 3: a quote is not closed/, { rejected: 0 }],
  ]
  const piped = ['a reject', 'a fault']
  // A directory of its own for what is copied: other tests copy at the same time.
  const TMPDIR = createDirectory(t)
  const pipe = (input: string, ...args: string[]) =>
    runProgram(t, process.execPath, [cli, 'import', '-', ...args], { DATABASE_URL, TMPDIR, input })
  for (const [title, input, said, counts] of bad) {
    const args = ['import', writeInput(t, input), '--strict', '--json', '--batch', '1']
    // What a pipe brings is in a file, too, once it is looked through.
    const runs: { stdout: string }[] = piped.includes(title) ? [await pipe(input, ...args.slice(2))] : []
    runs.push(await runCommand(args, { DATABASE_URL, TMPDIR }))
    for (const ran of runs) {
      t.match(ran, { code: 1, stderr: said }, title)
      t.match(JSON.parse(ran.stdout), { added: 0, replayed: 0, skipped: 0, ...counts })
    }
  }
  t.same(await namesIn(DATABASE_URL), ['there'])
  t.match(await pipe(good, '--strict'), { code: 0, stdout: /^2 added, 1 replayed/ })
  t.same(await namesIn(DATABASE_URL), ['there', 'a', 'b'])
  t.same(readdirSync(TMPDIR), [], 'nothing is left behind')
})

for (const { name, createDatabase } of engines)
  test(`with --strict plants without an id are added on ${name}`, async (t) => {
    const DATABASE_URL = await createDatabase(t)
    const args = ['import', writeInput(t, line('a') + line('b')), '--strict', '--patience', '0']
    t.match(await runCommand(args, { DATABASE_URL }), { code: 0, stdout: /^2 added/ })
    t.same(await namesIn(DATABASE_URL), ['a', 'b'])
  })

test('a dry run reports two plants with one id', async (t) => {
  const path = writeInput(t, line('a', { id: 1 }) + line('b', { id: 1 }) + line('a', { id: 1 }))
  const ran = await runCommand(['import', path, '--dry-run', '--json'], {
    DATABASE_URL: 'file:none/plants.db',
  })
  t.match(ran, {
    code: 1,
    stderr: /line 2: id is the id of a plant that already exists with a different name or tag\n$/,
  })
  t.match(JSON.parse(ran.stdout), { valid: 2, rejected: 1 })
})

test('a conflict of ids names the column that has them', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const path = writeInput(t, 'No.,name,tag\n1,a,\n1,b,\n')
  const ran = await runCommand(['import', path, '--map', 'id=No.', '--rejects', '-'], { DATABASE_URL })
  t.match(ran.stderr, `${path}, line 3: No. is the id of a plant that already exists`)
  t.equal(ran.stdout, 'No.,name,tag\n1,b,\n')
})

test('rejects are the bytes of the input; with - they go to stdout, and the counts to stderr', async (t) => {
  const rows = ['7,"b ""c"", d",x', '"8",,y', '9,"",\u00e9 ', '10,,"a\r\nb"']
  const head = 'id,"name",tag\r\n7,a,\n'
  const lines = rows.map((row) => `${row}\r\n`)
  const path = writeInput(t, head + lines.join('\n\r\n'))
  const ran = await runCommand(['import', path, '--rejects', '-', '--json'], {
    DATABASE_URL: await sqlite.createDatabase(t),
  })
  t.equal(ran.code, 1)
  const [conflicting, ...rejected] = lines
  t.equal(ran.stdout, `id,"name",tag\r\n${rejected.join('')}${conflicting}`)
  t.match(JSON.parse(ran.stderr.trimEnd().split('\n').at(-1) as string), {
    added: 1,
    conflicting: 1,
    rejected: 3,
    reasons: [
      {
        line: 6,
        reason: 'name must have at least 1 character',
        errors: [{ code: 'length', pointer: '/name' }],
      },
      { line: 9 },
      { line: 12 },
      { line: 3, errors: [{ code: 'id-conflict', pointer: '/id' }] },
    ],
  })
})

test('corrected rejects are an ordinary input, in the form of the first', async (t) => {
  const latin1 = Buffer.from('{"name":"Caf\xe9","tag":""}\n', 'latin1')
  const inputs: [input: string | Buffer, rejects: string | Buffer][] = [
    ['sep=;\nname;tag;id;;\na;;1\nb;;1\n"";c;;;\n', 'sep=;\nname;tag;id;;\n"";c;;;\nb;;1\n'],
    [
      line('a', { id: 1 }) + line('b', { id: 1 }) + line('', { tag: 'c' }),
      line('', { tag: 'c' }) + line('b', { id: 1 }),
    ],
    [
      `[${line('a', { id: 1 })},${line('b', { id: 1 })},{\n"name":"",\n"tag":"c" } ]`,
      `[\n{\n"name":"",\n"tag":"c" },\n${line('b', { id: 1 }).trimEnd()}\n]\n`,
    ],
    [Buffer.concat([Buffer.from(line('a', { id: 1 })), latin1]), latin1],
  ]
  for (const [input, expected] of inputs) {
    const DATABASE_URL = await sqlite.createDatabase(t)
    const rejects = join(createDirectory(t), 'rejects')
    await runCommand(['import', writeInput(t, input), '--rejects', rejects], { DATABASE_URL })
    t.equal(readFileSync(rejects, 'latin1'), Buffer.from(expected).toString('latin1'))
    const again = ['import', rejects]
    const itself = await runCommand([...again, '--rejects', rejects], { DATABASE_URL })
    t.match(itself, { code: 1, stderr: /rejects: it exists; name another file\n$/ })
    const unmended = await runCommand(again, { DATABASE_URL })
    t.match(unmended, { code: 1, stdout: /^0 added, 0 replayed/ })
    t.same(await namesIn(DATABASE_URL), ['a'])
    const mended = readFileSync(rejects, 'latin1')
      .replace('\xe9', '\u00c3\u00a9')
      .replace(/(b.*)1/, '$12')
      .replace(/^""|(?<="name":)""/m, '"d"')
    writeFileSync(rejects, mended, 'latin1')
    t.match(await runCommand([...again, '--restart'], { DATABASE_URL }), { code: 0 }, mended)
    const names = Buffer.isBuffer(input) ? ['a', 'Caf\u00e9'] : ['a', 'd', 'b']
    t.same(await namesIn(DATABASE_URL), names)
  }
})

const batch = 70

test('an interrupted import and --resume report the same position', async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await open(url)
  t.teardown(() => store.close())
  const path = writeInput(t, Array.from({ length: 20_000 }, (_, n) => line(`plant ${n}`)).join(''))
  const { child, ended } = startProgram(t, ['import', path, '--quiet', '--batch', `${batch}`, '--json'], url)
  await until(async () => (await store.log.head()).position > 0)
  child.kill('SIGINT')
  const { code, stdout, stderr } = await ended
  t.equal(code, 130)
  const [, said = ''] = /interrupted at record ([\d,]+); run/.exec(stderr) ?? []
  const records = Number(said.replaceAll(',', ''))
  t.ok(records > 0 && records < 20_000, said)
  t.match(JSON.parse(stdout), { added: records, skipped: 0 })
  const resumed = await runImport(url, path, { resume: true })
  // On a machine that is too busy to end in time, one batch more may have been on its way.
  const skipped = resumed.result?.skipped ?? 0
  t.ok([0, batch].includes(skipped - records), `${records} and ${skipped}`)
  t.equal(resumed.said[0], `input: ${count(skipped, 'record')} already imported`)
  t.match(resumed.result, { added: 20_000 - skipped })
})

test('an input that has changed where it was imported is refused, and nothing of it is added', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const long = Array.from({ length: 3000 }, (_, n) => line(`plant ${n}`)).join('')
  const changes: [before: string, after: string][] = [
    ['name,tag\na,\nb,\nc,\n', 'name,tag\na,\nB,\nc,\nd,\n'],
    ['name,tag\nFern,gre', 'name,tag\nFern,green'],
    ['name,tag\nFern,gre', 'name,tag\nFern,green\nOak,\n'],
    [line('a').trimEnd(), `${line('a').trimEnd()} ${line('b')}`],
    [long + line('x'), long + line('y') + line('z')],
    [long + line('v'), long],
    [`[${line('p')}]`, `[${line('q')},${line('p')}]`],
  ]
  for (const [before, after] of changes) {
    const path = writeInput(t, before)
    t.error((await next(path, { restart: true })).error)
    writeFileSync(path, after)
    for (const options of [{}, { resume: true }, { resume: true, strict: true }]) {
      const { error, plants } = await next(path, options)
      t.match(
        error?.message,
        /^input(:| does not begin any more with what was imported on 20\S+Z \(\d)/,
        after,
      )
      t.same(plants, [])
    }
  }
})

test('the same bytes under another name are refused, and --resume goes on behind them', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  for (const text of [
    line('a') + line('b'),
    Array.from({ length: 3000 }, (_, n) => line(`c ${n}`)).join(''),
  ]) {
    t.error((await next(writeInput(t, text))).error)
    const copied = writeInput(t, gzipSync(text))
    t.match(
      (await next(copied)).error?.message,
      /^input: [\d,]+ records already imported on .* from \S+input; --resume/,
    )
    writeFileSync(copied, gzipSync(text + line('new')))
    const { error, plants } = await next(copied, { resume: true })
    t.error(error)
    t.same(plants, [{ name: 'new', tag: '' }])
  }
  const [{ notes } = {}] = await store.sql.select(
    "SELECT count(*) AS notes FROM meta WHERE key LIKE 'import/%'",
  )
  t.equal(notes, 4)
})

test('a pipe is known again by what it brings', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const long = Array.from({ length: 3000 }, (_, n) => line(`plant ${n}`)).join('')
  const ends = [
    await pipeImport(t, DATABASE_URL, long),
    await pipeImport(t, DATABASE_URL, long),
    await pipeImport(t, DATABASE_URL, long + line('b'), '--resume'),
    await pipeImport(t, DATABASE_URL, long + line('b') + line('c'), '--resume'),
    await pipeImport(t, DATABASE_URL, long.replace('plant 2999', 'tree 2999') + line('c'), '--resume'),
  ]
  t.match(ends, [
    { code: 0, stdout: /^3,000 added/ },
    { code: 1, stderr: /stdin: 3,000 records already imported on 20\S+Z; --resume/ },
    { code: 0, stdout: /^1 added/ },
    { code: 0, stdout: /^1 added/, stderr: /3,001 records already imported/ },
    { code: 1, stdout: /^0 added/, stderr: /stdin does not begin any more/ },
  ])
  t.equal((await namesIn(DATABASE_URL)).length, 3002)
})

test('an import from a pipe that is refused ends, though more could come', async (t) => {
  const url = await sqlite.createDatabase(t)
  // A little more than what a pipe is known by.
  const long = Array.from({ length: 2500 }, (_, n) => line(`plant ${n}`)).join('')
  t.match(await pipeImport(t, url, long), { code: 0 })
  const { child, ended } = startProgram(t, ['import', '-'], url)
  child.stdin.write(long)
  t.match(await ended, { code: 1, stderr: /already imported/ })
})

for (const { name, createDatabase } of engines)
  test(`${name}: of imports that begin at once one adds the input`, async (t) => {
    const url = await createDatabase(t)
    await (await open(url)).close()
    const text = Array.from({ length: 500 }, (_, n) => line(`plant ${n}`)).join('')
    const path = writeInput(t, text)
    const ends = await Promise.all([
      ...[path, path, writeInput(t, text)].map((file) => runImport(url, file, { batchPlants: 50 })),
      pipeImport(t, url, text, '--batch', '50'),
      startProgram(t, ['import', path, '--resume', '--batch', '50'], url).ended,
    ])
    t.equal((await namesIn(url)).length, 500, JSON.stringify(ends))
  })

test('copy carries progress along', async (t) => {
  for (const { createDatabase } of engines) {
    const [from, to] = [await sqlite.createDatabase(t), await createDatabase(t)]
    const path = writeInput(t, line('a') + line('b'))
    t.error((await runImport(from, path)).error)
    const copied = await runCommand(['copy', '--from', from, '--to', to])
    t.match(copied, {
      code: 0,
      stdout: /^copied 2 plants and 0 tokens from \S+ into \S+, made now; both hold 2 plants/,
    })
    t.match((await runImport(to, path)).error?.message, /^input: 2 records already imported on/)
    writeFileSync(path, line('a') + line('b') + line('c'))
    t.match((await runImport(to, path, { resume: true })).result, { added: 1, skipped: 2 })
    t.same(await namesIn(to), ['a', 'b', 'c'])
  }
})

test('a last record that was cut short is added once it is whole', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const cases: [start: string, cut: string, whole: string][] = [
    [line('a'), '{"name":"b","ta', line('b') + line('c')],
    ['name,tag\na,\n', 'b', 'b,\nc,\n'],
    ['name,tag\r\na,\r\n', '"b', '"b",\r\nc,'],
    [`[${line('a')},`, '{"name":"b"', `${line('b')},${line('c')}]`],
    [line('x'.repeat(200)).repeat(500), '{"name":', line('b') + line('c')],
  ]
  for (const [start, cut, whole] of cases) {
    const path = writeInput(t, start + cut)
    const { error, plants } = await next(path, { restart: true })
    t.match(error?.message, /^input, line \d+: .*(cut short|not closed)/)
    t.not(plants.length, 0)
    writeFileSync(path, start + whole)
    for (const names of [['b', 'c'], []]) {
      const resumed = await next(path, { resume: true })
      t.error(resumed.error)
      t.same(
        resumed.plants.map(({ name }) => name),
        names,
      )
    }
  }
})

test('an import that claims an input looks again when another was faster', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  const path = writeInput(t, `${line('a')}{"name":"b","ta`)
  t.ok((await next(path)).error)
  writeFileSync(path, line('a') + line('b'))
  const faster = ['UPDATE', 'INSERT']
  const execute: typeof store.sql.execute = async (text, values) => {
    const isFirst = text.startsWith(faster[0] ?? '-') && faster.shift() !== undefined
    return isFirst ? 0 : store.sql.execute(text, values)
  }
  const openStore = async () => ({ ...store, close: async () => {}, sql: { ...store.sql, execute } })
  const { result, plants } = await next(path, { resume: true, openStore })
  t.match(
    { result, plants, faster },
    { result: { added: 1, skipped: 1 }, plants: [{ name: 'b' }], faster: [] },
  )
})
