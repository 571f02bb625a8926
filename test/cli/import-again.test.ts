// import: an input that is imported again after it has grown, was interrupted or was changed. Each plant is added once.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { separate } from '../../src/cli/console.ts'
import { addPlants, append as closeNote } from '../../src/commands/import/add.ts'
import type { Checked, Match } from '../../src/commands/import/check.ts'
import { type FailedOutcome, StoreUnavailable } from '../../src/store/errors.ts'
import { cli, runCommand, spawnCli } from '../support/commands.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { countRounds, isFull, makeRandom, tellSeed } from '../support/full.ts'
import { preload, spawnProgram } from '../support/processes.ts'
import { open } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { pipeImport, quickest, readPlants, shareStore, writeInput } from './imports.ts'

const start = (t: Test, args: string[], DATABASE_URL: string) => spawnCli(t, args, { DATABASE_URL })
const line = (name: string, more = {}) => `${JSON.stringify({ name, tag: '', ...more })}\n`
const named = (plants: { name: string }[]) => plants.map(({ name }) => name)
const nothingNew = (plants: string) => [`input: ${plants} already imported`, 'input: no new plants']
const [a, b, c] = ['a', 'b', 'c'].map((name) => line(name)) as [string, string, string]
const [x, y, z] = ['a', 'b', 'c'].map((name) => line(name, { tag: 'x' })) as [string, string, string]

test('adds only the new records of a grown input, in each format', async (t) => {
  const growing: [before: string, after: string][] = [
    [a + b, a + b + c],
    [x + y.trimEnd(), x + y + z],
    [`${x.trimEnd()}\r\n${y.trimEnd()}\r`, `${x.trimEnd()}\r\n${y.trimEnd()}\r\n${z}`],
    ['name,tag\na,\nb,\n', 'name,tag\na,\nb,\nc,\n'],
    ['name,tag\r\na,\r\nb,', 'name,tag\r\na,\r\nb,\r\nc,'],
    ['name\ttag\na\t\nb\t\n', 'name\ttag\na\t\nb\t\nc\t\n'],
    [`[${a},${b}]`, `[${a},${b},${c}]`],
  ]
  for (const engine of engines) {
    const { next } = await shareStore(t, await engine.createDatabase(t))
    // Formats do not depend on the engine.
    for (const [before, after] of growing.slice(0, engine === quickest ? undefined : 1)) {
      const path = writeInput(t, before)
      const ends = [await next(path, '--again')]
      writeFileSync(path, after)
      for (let n = 0; n < 2; n++) ends.push(await next(path))
      t.strictSame(
        ends.map(({ code, counts, said, plants }) => [code, counts.skipped, said.length, named(plants)]),
        [
          [0, 0, 0, ['a', 'b']],
          [0, 2, 1, ['c']],
          [0, 3, 2, []],
        ],
        after,
      )
      t.strictSame(ends[2]?.said, nothingNew('3 plants'))
    }
  }
})

test('recognizes an input from another path, from a pipe or compressed; --again adds all of it', async (t) => {
  const url = await sqlite.createDatabase(t)
  const { next } = await shareStore(t, url)
  const path = writeInput(t, a + b)
  t.strictSame(named((await next(path)).plants), ['a', 'b'])
  t.strictSame((await next(writeInput(t, a + b))).said, nothingNew('2 plants'))
  t.strictSame((await next(writeInput(t, gzipSync(`${a}${b}`)))).said, nothingNew('2 plants'))
  t.match(await pipeImport(t, url, a + b), {
    code: 0,
    stderr: 'stdin: 2 plants already imported\nstdin: no new plants\n',
  })
  t.strictSame(named((await next(writeInput(t, a + b + c))).plants), ['c'])
  // Continuing an import keeps its record.
  t.strictSame((await next(path)).said, nothingNew('2 plants'))
  t.strictSame(named((await next(path, '--again')).plants), ['a', 'b'])
  t.strictSame((await next(writeInput(t, a + b + c))).said, nothingNew('3 plants'))
})

test('recognizes an input whose last record is invalid with other options', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const input = a + line('b', { x: 1 })
  const path = writeInput(t, input)
  t.match(await next(path, '--ignore-unknown'), { code: 0, counts: { added: 2 } })
  for (const again of [path, writeInput(t, input)])
    t.match(await next(again, '--skip-invalid'), { code: 1, counts: { added: 0, skipped: 1, rejected: 1 } })
  // With the options in the other order, an old plant would be mistaken for an added one.
  const other = writeInput(t, line('c', { x: 1 }) + b)
  t.match(await next(other, '--skip-invalid'), { code: 1, counts: { added: 1, rejected: 1 } })
  const said = [/different options, which accepted 1 record, not 2: /]
  t.match(await next(other, '--ignore-unknown'), { code: 1, plants: [], said })
  t.match(await next(other, '--ignore-unknown', '--again'), { code: 0, counts: { added: 2 } })
  t.strictSame((await next(other, '--ignore-unknown')).said, nothingNew('2 plants'))
  // Other options may also make another plant of an added record, which then conflicts with itself.
  const spaced = writeInput(t, 'name,tag,id\nb,x, 2\n"a ",x,1\n')
  t.match(await next(spaced, '--skip-invalid'), { code: 1, counts: { added: 1, rejected: 1 } })
  t.match(await next(spaced, '--skip-invalid', '--trim'), { code: 1, plants: [], said: [/line 3/, ...said] })
})

test('counts equal plants with existing ids as replayed', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const lines = [line('a', { id: 1 }), line('b', { id: 2 })]
  t.match(await next(writeInput(t, lines.join(''))), { code: 0, counts: { added: 2, replayed: 0 } })
  const reversed = writeInput(t, lines.toReversed().join(''))
  t.match(await next(reversed), { code: 0, counts: { added: 0, replayed: 2 } })
})

test('refuses a file that was changed in the imported part, and adds nothing', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const long = Array.from({ length: 9000 }, (_, n) => line(`plant ${n}`)).join('')
  const flip = (text: string, at: number) =>
    text.slice(0, at) + (text[at] === '1' ? '2' : '1') + text.slice(at + 1)
  const changes: [title: string, before: string, after: string][] = [
    ['a corrected row, and an appended one', 'name,tag\na,\nb,\nc,\n', 'name,tag\na,\nB,\nc,\nd,\n'],
    ['a line that was half-written', 'name,tag\nFern,gre', 'name,tag\nFern,green'],
    ['the end of a long input', long + line('x'), long + line('y') + line('z')],
    ['one bit in the middle', long, flip(long, long.indexOf('plant 5000') + 7)],
    ['a file that is cut', line('u') + long + line('v'), line('u') + long],
    ['an array', `[${line('p')}]`, `[${line('q')},${line('p')}]`],
  ]
  for (const [title, before, after] of changes) {
    const path = writeInput(t, before)
    t.equal((await next(path, '--again')).code, 0)
    writeFileSync(path, after)
    const refused = await next(path)
    t.match(refused, { code: 1, plants: [] }, title)
    t.match(refused.said, [
      /^plant-store: input no longer starts with what was imported on 20\S+Z: import only the new records/,
    ])
    // An input at another path counts as another input.
    t.ok((await next(writeInput(t, after))).plants.length > 0, title)
    t.ok((await next(path, '--again')).plants.length > 0, title)
    t.equal((await next(path)).said.at(-1), 'input: no new plants', title)
  }
})

test('compares a file with its latest import, even if the clock was set back since', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  const path = writeInput(t, line('b'))
  await next(path)
  await store.sql.execute(`UPDATE meta SET value = replace(value, '"date":"20', '"date":"21')`)
  writeFileSync(path, line('a'))
  await next(path, '--again')
  writeFileSync(path, line('a') + line('c'))
  t.match(await next(path), { code: 0, counts: { skipped: 1, added: 1 } })
  await store.sql.execute(
    "CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'full'); END",
  )
  t.match((await next(writeInput(t, x))).said, [/: the import was interrupted: .*full; run the same command/])
})

test('adds a skipped record at the end of an input once it is complete', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const path = writeInput(t, `${a}{"name":"b","ta`)
  t.match(await next(path), { code: 1, plants: [] })
  t.strictSame(named((await next(path, '--skip-invalid')).plants), ['a'])
  appendFileSync(path, `g":""}\n${c}`)
  const whole = await next(path)
  t.match(whole, { code: 0, counts: { skipped: 1 } })
  t.strictSame(named(whole.plants), ['b', 'c'])
})

test('adds nothing if there is a fault after the imported part', async (t) => {
  const { next } = await shareStore(t, await quickest.createDatabase(t))
  const path = writeInput(t, a)
  await next(path)
  appendFileSync(path, `${b}{}\n`)
  t.match(await next(path), {
    code: 1,
    plants: [],
    said: [/line 3: name is required/, /nothing was added: faults in 1 of 3 records/],
  })
  // The file of rejects has all invalid records.
  const rejects = join(createDirectory(t), 'rejects')
  t.match(await next(path, '--skip-invalid', '--rejects', rejects), { code: 1, plants: [{ name: 'b' }] })
  t.equal(readFileSync(rejects, 'utf8'), '{}\n')
})

/** The number of plants per kill, since some are added before the kill takes effect. */
const plantsPerRound = 4000
const rounds = countRounds(20, 2)
const names = Array.from({ length: (rounds + 1) * plantsPerRound }, (_, n) => `plant ${n}`)
const ndjson = names.map((name) => line(name)).join('')

for (const { name, createDatabase } of engines)
  for (const again of isFull || engines.length === 1 ? [false, true] : [name !== 'SQLite'])
    test(`${name}: adds every plant once despite repeated kills${again ? ', with --again' : ''}`, async (t) => {
      tellSeed(t)
      const random = makeRandom()
      const url = await createDatabase(t)
      const path = writeInput(t, ndjson)
      const command = ['import', path, '--quiet', ...(again ? ['--again'] : [])]
      const store = await open(t, url)
      const before = again ? names.slice(0, 3) : []
      if (again) t.equal((await pipeImport(t, url, before.map((one) => line(one)).join(''))).code, 0)
      let kills = 0
      for (let round = 0; round < rounds; round++) {
        const { position } = await store.log.head()
        const { child, ended } = start(t, command, url)
        const over = ended.then(() => true)
        const most = position + random() * plantsPerRound
        while ((await store.log.head()).position <= most && !(await Promise.race([over, sleep(2)])));
        await sleep(random() * 10)
        child.kill('SIGKILL')
        if ((await ended).signal === 'SIGKILL') kills++
        const head = (await store.log.head()).position
        if (head >= names.length + before.length) break
      }
      t.ok(kills > 0, `${kills} kills`)
      const { code, stderr } = await runCommand(command, { DATABASE_URL: url })
      t.equal(code, 0, stderr)
      t.match(stderr, /: [\d,]+ plants? already imported\n/)
      t.strictSame(named(await readPlants(url)), [...before, ...names])
      t.match(await runCommand(['import', path], { DATABASE_URL: url }), { stderr: /: no new plants\n$/ })
    })

for (const engine of engines)
  test(`${engine.name}: of two simultaneous imports of an input, refuses one and adds each plant once`, async (t) => {
    // The engines differ only in simultaneous commits.
    const cases = [[], [true], [false, true]].slice(0, engine === quickest ? undefined : 1)
    for (const [isLater, isContinued] of cases) {
      const url = await engine.createDatabase(t)
      const store = await open(t, url)
      const path = writeInput(t, ndjson)
      if (isContinued) await interrupt(t, url)
      const first = start(t, ['import', path, '--quiet'], url)
      // Either both read the progress before the first batch, or the first one is already adding.
      if (isLater) await until(async () => (await store.log.head()).position > 0)
      const second = pipeImport(t, url, ndjson, '--quiet')
      const ends = await Promise.all([first.ended, second])
      const refused = ends.filter(({ code }) => code === 1)
      t.ok(refused.length <= 1)
      for (const { stderr } of refused)
        t.match(
          stderr,
          /another import of this input .* is running: wait for it to finish, then run the same command without --again\n$/,
        )
      t.strictSame(named(await readPlants(url)), names)
    }
  })

/** Makes the pause after a batch last until the file exists that the variable GO names. */
const longPauses = `
  import { existsSync } from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  import timers from 'node:timers/promises'
  const { setTimeout } = timers
  timers.setTimeout = async () => { while (!existsSync(String(process.env.GO))) await setTimeout(5) }
  syncBuiltinESMExports()`

/** Imports a file until the first batch has been added. Resolves to its path, and the number of plants added. */
async function interrupt(t: Test, url: string, path = writeInput(t, ndjson), ...options: string[]) {
  const store = await open(t, url)
  const before = (await store.log.head()).position
  const env = { ...preload(longPauses), DATABASE_URL: url }
  const { child, ended } = spawnCli(t, ['import', path, '--quiet', ...options], env)
  await until(async () => (await store.log.head()).position > before)
  child.kill('SIGINT')
  t.match((await ended).stderr, 'plant-store: interrupted; run the same command again to continue\n')
  const position = (await store.log.head()).position - before
  t.ok(position > 0 && position < names.length, `${position} plants`)
  return { path, position }
}

test('only the same command continues an interrupted import with --again', async (t) => {
  const url = await sqlite.createDatabase(t)
  const run = (path: string, ...options: string[]) =>
    runCommand(['import', path, ...options], { DATABASE_URL: url })
  const path = writeInput(t, ndjson)
  await run(path)
  await interrupt(t, url, path, '--again')
  t.match(await run(path), { code: 0, stderr: /no new plants/ })
  writeFileSync(path, ndjson.slice(0, ndjson.lastIndexOf('{')) + x)
  t.match(await run(path), { code: 1, stderr: /no longer starts/ })
  writeFileSync(path, ndjson)
  t.match(await run(path, '--again'), { code: 0 })
  t.strictSame(named(await readPlants(url)), [...names, ...names])
})

test('the same command continues an import with --again until its results are shown', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, `${a}${b}{}\n`)
  const options = ['--again', '--skip-invalid']
  await interrupt(t, url, path, ...options)
  const run = (target: string) =>
    runCommand(['import', path, ...options, '--rejects', target], { DATABASE_URL: url })
  const rejects = join(createDirectory(t), 'rejects')
  t.match(await run(rejects), { code: 1, stderr: /no new plants/, stdout: /^0 added, .* 1 rejected/ })
  t.equal(readFileSync(rejects, 'utf8'), '{}\n')
  t.match(await run('-'), { stdout: '{}\n', stderr: /line 3: [^\n]+\n2 added, .* 1 rejected/ })
  t.strictSame(named(await readPlants(url)), ['a', 'b', 'a', 'b'])
})

test('an interrupted import with --again may have no valid record with other options', async (t) => {
  const url = await sqlite.createDatabase(t)
  const input = names.map((name) => line(name, { x: 1 })).join('')
  const path = writeInput(t, input)
  const { position } = await interrupt(t, url, path, '--again', '--ignore-unknown')
  writeFileSync(path, x + input)
  const changed = await runCommand(['import', path, '--ignore-unknown'], { DATABASE_URL: url })
  t.match(changed, { code: 1, stderr: /no longer starts/ }, 'a file that has changed is refused')
  writeFileSync(path, input)
  const run = (option: string) => runCommand(['import', path, '--again', option], { DATABASE_URL: url })
  t.match(await run('--skip-invalid'), { code: 1, stdout: /^0 added/, stderr: /input: no new plants\n/ })
  t.match(await run('--ignore-unknown'), { code: 0, stdout: `${separate(names.length - position)} added` })
})

test('records both paths if an interrupted import is completed from another path', async (t) => {
  const url = await sqlite.createDatabase(t)
  const { path } = await interrupt(t, url)
  const store = await open(t, url)
  const [[key = ''] = []] = await store.notes()
  const other = writeInput(t, ndjson)
  t.match(await runCommand(['import', other], { DATABASE_URL: url }), { code: 0 })
  t.match((await store.notes()).get(key), '"isOpen":false', 'the other one is refused')
  t.strictSame(named(await readPlants(url)), names)
  for (const changed of [other, path]) {
    writeFileSync(changed, ndjson.replace('"name":"', '"name":"other '))
    const { code, stderr } = await runCommand(['import', changed], { DATABASE_URL: url })
    t.match({ code, stderr }, { code: 1, stderr: /no longer starts/ })
  }
})

test('records the path of a file without new records', async (t) => {
  const { next, store } = await shareStore(t, await quickest.createDatabase(t))
  const [path, other] = [writeInput(t, a + b), writeInput(t, a + b)]
  await next(path)
  for (let n = 0; n < 3; n++) t.strictSame((await next(other)).said, nothingNew('2 plants'))
  t.equal((await store.notes()).size, 2)
  const others = await Promise.all([1, 2].map(() => next(writeInput(t, a + b))))
  for (const end of others) t.match(end, { code: 0, said: nothingNew('2 plants') }, 'two at once')
  for (const changed of [other, path]) {
    writeFileSync(changed, x + b + c)
    t.match(await next(changed), { code: 1, plants: [], said: [/no longer starts/] })
  }
})

for (const place of ['at another path', 'at its path'])
  test(`an interrupted import continues after a file ${place} with the same beginning`, async (t) => {
    const url = await sqlite.createDatabase(t)
    const { path, position } = await interrupt(t, url)
    const common = [...names.slice(0, position + 1), 'other'].map((name) => line(name)).join('')
    const [first, second] =
      place === 'at its path' ? [path, writeInput(t, ndjson)] : [writeInput(t, common), path]
    writeFileSync(first, common)
    t.match(await runCommand(['import', first], { DATABASE_URL: url }), { code: 0, stdout: /^2 added/ })
    t.match(await runCommand(['import', second], { DATABASE_URL: url }), { code: 0 })
    const [rest, repeated] = [names.slice(position), names[position] as string]
    t.strictSame(named(await readPlants(url)), [...names.slice(0, position), repeated, 'other', ...rest])
  })

test('adds the checked plants, and reports an id that was taken meanwhile', async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  const known = line('a', { id: 1 }) + line('b', { id: 1 })
  t.match(await pipeImport(t, url, known, '--skip-invalid'), {
    stdout: '1 added, 0 replayed, 1 conflicting',
    stderr: /^stdin: line 2: [^\n]+\n$/,
  })
  t.match(await pipeImport(t, url, known, '--skip-invalid'), { stderr: /: 1 plant already imported/ })
  const path = writeInput(t, `${known}${ndjson}${line('late', { id: 5 })}`)
  const GO = join(createDirectory(t), 'go')
  const env = { ...preload(longPauses), DATABASE_URL: url, GO }
  const { ended } = spawnCli(t, ['import', path, '--skip-invalid'], env)
  await until(async () => (await store.log.head()).position > 1)
  await store.log.append([{ item: '{"name":"other","tag":""}', id: 5 }])
  writeFileSync(path, a)
  writeFileSync(GO, '')
  const stdout = `${separate(names.length)} added, 0 replayed, 2 conflicting`
  t.match(await ended, { code: 1, stdout, stderr: /other clients used some of these ids/ })
  t.equal((await store.log.head()).position, names.length + 2)
})

test('adds nothing if the database has lost an earlier import since the check', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const entry = { item: '{"name":"c","tag":""}', id: undefined }
  const batch = { bytes: 9, hash: '', valid: 3 }
  const checked = {
    batches: [batch],
    notes: [],
    plants: 3,
    newKey: 'import/b/0',
    spool: { readPlants: () => [entry] },
  }
  const earlier = { ...batch, valid: 2, plants: 2, isOpen: false, key: 'import/a/0', value: '{}' }
  const target = { path: 'input', store, earlier: earlier as unknown as Match, again: false }
  const add = () => addPlants(checked as unknown as Checked, target, () => {})
  await t.rejects(add(), { message: /^another import .*, then run the same command without --again$/ })
  t.equal((await store.log.head()).position, 0)
  await store.log.append([], { notes: [{ ...earlier, before: '' }] })
  await add()
  t.equal((await store.log.head()).position, 1)
})

test('says whether anything is left to do if the note of an import with --again cannot be closed', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const note = { key: 'import/a/0', before: 'open', value: 'closed' }
  const close = (outcome: FailedOutcome) => {
    const append = () => Promise.reject(new StoreUnavailable(outcome, 'lost'))
    return closeNote({ ...store, log: { ...store.log, append } }, [], [note])
  }
  const message = 'the import was interrupted: lost; all plants were added'
  await t.rejects(close('unknown'), { message })
  await store.log.append([], { notes: [{ ...note, before: '', value: 'open' }] })
  await t.rejects(close('nothing-added'), { message: /lost; run the same command to continue$/ })
  await store.log.append([], { notes: [note] })
  t.strictSame(await close('nothing-added'), [], 'another process has closed it')
})

test('starts another import with --again although an earlier note was lost', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, a)
  const run = () => runCommand(['import', path, '--again'], { DATABASE_URL: url })
  for (let n = 0; n < 2; n++) t.match(await run(), { code: 0 })
  const db = new DatabaseSync(new URL(url))
  t.equal(db.prepare("DELETE FROM meta WHERE key LIKE 'import/%/0'").run().changes, 1)
  db.close()
  t.match(await run(), { code: 0, stdout: '1 added' })
})

test('stops if another import of the same input has added plants', async (t) => {
  const url = await sqlite.createDatabase(t)
  const store = await open(t, url)
  const path = writeInput(t, ndjson)
  const GO = join(createDirectory(t), 'go')
  const { ended } = spawnCli(t, ['import', path], { ...preload(longPauses), DATABASE_URL: url, GO })
  await until(async () => (await store.log.head()).position > 0)
  t.match(await runCommand(['import', path], { DATABASE_URL: url }), { code: 0 })
  writeFileSync(GO, '')
  t.match(await ended, {
    code: 1,
    stderr:
      /input: another import of this input .* is running: wait for it to finish, then run the same command without --again\n$/,
  })
  t.strictSame(named(await readPlants(url)), names)
})

test('imports into the empty database of a killed import', async (t) => {
  for (const journal of [undefined, 'wal']) {
    const database = join(createDirectory(t), 'plants.db')
    writeFileSync(database, '')
    if (journal) {
      const db = new DatabaseSync(database)
      db.exec(`PRAGMA journal_mode = ${journal}`)
      db.close()
    }
    t.match(await runCommand(['status'], { DATABASE_URL: `file:${database}` }), { code: 1 })
    const ran = await runCommand(['import', writeInput(t, a)], { DATABASE_URL: `file:${database}` })
    t.match(ran, { code: 0, stdout: /^1 added/, stderr: '' })
  }
})

test('fails with one line on a full disk, and resumes when there is room', async (t) => {
  const directory = createDirectory(t)
  const DATABASE_URL = `file:${directory}/plants.db`
  const path = writeInput(t, ndjson)
  // Limits each file to 1 MiB. Without the instruments of tap, which also write files.
  const limit = ['-i', `DATABASE_URL=${DATABASE_URL}`, 'sh', '-c', 'ulimit -f 1024; exec "$0" "$@" --quiet']
  const { code, stderr } = await spawnProgram(t, 'env', [...limit, process.execPath, cli, 'import', path])
    .ended
  t.equal(code, 1)
  t.ok((await readPlants(DATABASE_URL)).length > 0)
  t.match(stderr, /^plant-store: the import was interrupted: .+; run the same command to continue\n$/)
  t.match(await runCommand(['import', path], { DATABASE_URL }), { code: 0 })
  t.strictSame(named(await readPlants(DATABASE_URL)), names)
})
