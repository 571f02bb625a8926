// import: what is kept of an import that was cut short, and what it is resumed with.
import { execFileSync } from 'node:child_process'
import { appendFileSync, closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { test } from 'tap'
import { decompress } from '../../src/maintenance/import/decompress.ts'
import { count } from '../../src/runtime/count.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { open, readPlants, runImport, shareStore, writeInput } from './imports.ts'

const names = Array.from({ length: 5000 }, (_, n) => `plant ${n}`)
const ndjson = names.map((name) => `{"name":"${name}","tag":""}\n`).join('')

/** Stops an import when it has read something. */
function stopper() {
  const controller = new AbortController()
  const reason = new Error('stop')
  const onProgress = (records: number) => records > 0 && controller.abort(reason)
  return { reason, options: { signal: controller.signal, onProgress }, controller }
}

test('an interrupted import is reported, and another input of the same name is not resumed', async (t) => {
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, ndjson)
  const { reason, options } = stopper()
  const stopped = await runImport(url, path, { ...options, batchPlants: 10 })
  t.equal(stopped.error, reason)
  const held = (await readPlants(url)).length
  t.ok(held > 0 && held < names.length, `${held} plants`)

  writeFileSync(path, `{"name":"other","tag":""}\n`)
  const other = await runImport(url, path, { resume: true })
  t.match(other.error?.message, /^input does not begin any more with what was imported on 20/)
  writeFileSync(path, ndjson)
  let closed = 0
  const openStore = async () => {
    const store = await open(url)
    const close = async () => {
      closed++
      await store.close()
    }
    return { ...store, close }
  }
  t.ok((await runImport(url, path, { openStore })).error)
  t.equal(closed, 1, 'nothing is left open after a refusal')
  t.equal((await readPlants(url)).length, held)

  for (const trim of [false, true])
    t.match(
      (await runImport(url, path, { trim })).error?.message,
      new RegExp(
        `^input: an import was cut short after ${count(held, 'record')}, on .*; --resume goes on there, --restart`,
      ),
    )
  t.equal((await readPlants(url)).length, held)
  t.match((await runImport(url, path, { restart: true })).result, { added: names.length, skipped: 0 })
  t.match((await runImport(url, path, { resume: true })).result, { added: 0, skipped: names.length })
})

test('a compressed input is stopped and resumed like any other', async (t) => {
  const url = await sqlite.createDatabase(t)
  // Larger than what is read ahead.
  const path = writeInput(t, gzipSync(ndjson.replaceAll('""', `"${'x'.repeat(250)}"`), { level: 0 }))
  const { reason, options } = stopper()
  t.equal((await runImport(url, path, { ...options, batchPlants: 10 })).error, reason)
  t.error((await runImport(url, path, { resume: true })).error)
  t.strictSame(
    (await readPlants(url)).map(({ name }) => name),
    names,
  )
  t.match((await runImport(url, path, { resume: true })).result, { added: 0, skipped: names.length })
})

test('an input that has grown since its import is imported from there on', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  // What the two have in common is more than what an input is known by.
  const begun = ndjson.repeat(3)
  const path = writeInput(t, begun)
  t.error((await next(path)).error)
  for (const added of [1, 0]) {
    writeFileSync(path, `${begun}{"name":"new","tag":""}\n`)
    const { result, plants } = await next(path, { resume: true })
    t.match(result, { added, skipped: 15_001 - added })
    t.equal(plants.length, added)
  }
})

test('an import that is stopped before it has read anything says why', async (t) => {
  const url = await sqlite.createDatabase(t)
  for (const strict of [false, true]) {
    const { controller, reason, options } = stopper()
    const fifo = join(createDirectory(t), 'fifo')
    execFileSync('mkfifo', [fifo])
    const writer = openSync(fifo, 'r+')
    t.teardown(() => closeSync(writer))
    const stopped = runImport(url, fifo, { ...options, strict })
    controller.abort(reason)
    // A read that is under way ends with something to read.
    writeSync(writer, '{}\n')
    t.equal((await stopped).error, reason)
  }
})

test('an import that is stopped in the middle of what is compressed says why', async (t) => {
  const url = await sqlite.createDatabase(t)
  const { controller, reason, options } = stopper()
  const fifo = join(createDirectory(t), 'fifo')
  execFileSync('mkfifo', [fifo])
  const writer = await openFile(fifo, 'r+')
  t.teardown(() => writer.close())
  const stopped = runImport(url, fifo, options)
  // The head of gzip names a file: with a name of this length most of it must be read before all of it is written.
  await writer.write(Buffer.from(`\x1f\x8b\x08\x08${'x'.repeat(200_000)}`, 'latin1'))
  controller.abort(reason)
  await writer.write('x')
  t.equal((await stopped).error, reason)
})

test('the file of rejected records holds each of them once, also after an import is resumed', async (t) => {
  const url = await sqlite.createDatabase(t)
  // Conflicts with the first line at the end of each batch; later on rejects alone.
  const line = (n: number) =>
    n % 2 === 1 && n < 3000 ? `{"name":"plant ${n}","tag":"","id":1}` : `{"name":"","tag":"${n}"}`
  const lines = names.map((_, n) => line(n + 1))
  for (const format of ['ndjson', 'json'] as const) {
    const rejects = join(createDirectory(t), 'rejects')
    const path = writeInput(t, format === 'json' ? `[${lines}]` : `${lines.join('\n')}\n`)
    const { reason, options } = stopper()
    const first = { ...options, rejects, batchPlants: 10, restart: true }
    t.equal((await runImport(url, path, first)).error, reason)
    const left = readFileSync(rejects, 'utf8')
    for (const other of [`${left}{"name":"","tag":"9"}\n`, `${left}\n`, left.slice(0, 9)]) {
      writeFileSync(rejects, other)
      const { error } = await runImport(url, path, { rejects, resume: true, batchPlants: 10 })
      t.match(error?.message, /^cannot write \S+: it is not as the import left it; name another file$/)
      t.equal(readFileSync(rejects, 'utf8'), other)
    }
    // As if it was killed in the middle of writing.
    writeFileSync(rejects, left.slice(0, -5))
    t.error((await runImport(url, path, { rejects, resume: true, batchPlants: 10 })).error)
    const text = readFileSync(rejects, 'utf8')
    const kept: object[] =
      format === 'json'
        ? JSON.parse(text)
        : text
            .trim()
            .split('\n')
            .map((one) => JSON.parse(one))
    const known = kept.map((plant) => JSON.stringify(plant))
    // The first plant is there already when the second format comes.
    const expected = lines.slice(1)
    t.strictSame(known.toSorted(), expected.toSorted())
    const again = await runImport(url, path, { rejects, resume: true })
    t.match(again, { error: undefined, result: { added: 0, skipped: 5000, rejected: 0 } })
    t.equal(readFileSync(rejects, 'utf8'), text)
  }
  t.match(await readPlants(url), [{ name: 'plant 1', id: 1 }])
})

test('conflicts stay in the file of rejected records when the import is killed before they are written', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  const rejects = join(createDirectory(t), 'rejects')
  const lines = ['a', 'b', 'c'].map((name) => `{"name":"${name}","tag":"","id":1}\n`)
  const path = writeInput(t, lines.join(''))
  const reason = new Error('killed')
  let batches = 0
  const append: typeof store.log.append = async (...args) => {
    const outcomes = await store.log.append(...args)
    if (++batches === 2) throw reason
    return outcomes
  }
  const openStore = async () => ({ ...store, close: async () => {}, log: { ...store.log, append } })
  t.equal((await next(path, { openStore, rejects, batchPlants: 1 })).error, reason)
  t.equal(readFileSync(rejects, 'utf8'), '')
  await next(path, { rejects, resume: true })
  t.equal(readFileSync(rejects, 'utf8'), lines.slice(1).join(''))
})

test('an import whose progress another one takes over ends with one line', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  const path = writeInput(t, ndjson)
  const { log } = store
  const append: typeof log.append = async (...args) => {
    await store.sql.execute(
      `UPDATE meta SET value = json_set(value, '$.run', 'another') WHERE key LIKE 'import/%'`,
    )
    return log.append(...args)
  }
  const openStore = async () => ({ ...store, close: async () => {}, log: { ...log, append } })
  const { error, plants } = await next(path, { openStore, batchPlants: 10 })
  t.match(error?.message, /^another import of input has begun$/)
  t.equal(plants.length, 0)
})

test('a batch with an unknown outcome is added once, also when the next attempt fails', async (t) => {
  const { next, store } = await shareStore(t, await sqlite.createDatabase(t))
  const outcomes = ['unknown', 'nothing-added'] as const
  let batches = 0
  const append: typeof store.log.append = async (...args) => {
    const outcome = outcomes[batches++]
    if (outcome !== 'nothing-added') await store.log.append(...args)
    if (outcome) throw new StoreUnavailable(outcome, 'as the test wants it')
    return store.log.append([])
  }
  const openStore = async () => ({ ...store, close: async () => {}, log: { ...store.log, append } })
  const { error, result, plants } = await next(writeInput(t, '{"name":"a","tag":""}\n'), {
    openStore,
    patienceMs: 10_000,
  })
  t.error(error)
  t.match(result, { added: 1 })
  t.strictSame(plants, [{ name: 'a', tag: '' }])
})

for (const engine of engines)
  test(`${engine.name}: no import is forgotten`, async (t) => {
    const { next } = await shareStore(t, await engine.createDatabase(t))
    const length = engine === sqlite ? 102 : 25
    const paths = Array.from({ length }, (_, n) => writeInput(t, `{"name":"${n}","tag":""}\n`.repeat(12)))
    for (const path of paths) t.error((await next(path, { batchPlants: 5 })).error)
    t.match((await next(paths[0] as string, { resume: true })).result, { added: 0, skipped: 12 })
    t.match((await next(paths[0] as string)).error?.message, /^input: 12 records already imported on/)
  })

test('an input that has grown behind a record that is too long is imported from there on', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const path = writeInput(t, `{"name":"a","tag":""}\n{"name":"${'x'.repeat(3_000_000)}"}\n`)
  t.match(await next(path), { error: undefined, result: { added: 1, rejected: 1 } })
  appendFileSync(path, '{"name":"b","tag":""}\n')
  const grown = await next(path, { resume: true })
  t.match(grown, { error: undefined, result: { added: 1, rejected: 0 }, plants: [{ name: 'b' }] })
})

test('a compressed input is known by its first bytes, whatever pieces they come in', async (t) => {
  const text = '{"name":"a","tag":""}\n'
  for (const compress of [gzipSync, zstdCompressSync]) {
    const whole = compress(text)
    const pieces = async function* (): AsyncGenerator<Buffer, undefined> {
      for (let n = 0; n < whole.length; n++) yield whole.subarray(n, n + 1)
    }
    const { isCompressed, bytes } = await decompress(pieces())
    t.ok(isCompressed)
    let read = ''
    for await (const chunk of bytes) read += chunk
    t.equal(read, text)
  }
})

test('without a file, the records that are not shown are counted', async (t) => {
  const path = writeInput(t, '{}\n'.repeat(12))
  const { said } = await runImport('file:never-opened.db', path, { dryRun: true, isTerminal: true })
  t.equal(said.length, 11)
  t.equal(said.at(-1), 'and 2 more; --rejects FILE keeps them all')
})

test('characters of several bytes are whole wherever the input is cut into pieces', async (t) => {
  const { next } = await shareStore(t, await sqlite.createDatabase(t))
  const tree = '山🌴'.repeat(40)
  for (const spaces of ['', ' ', '  ', '   ', '    ', '     ', '      ']) {
    const line = `${JSON.stringify({ name: tree, tag: 'é' })}\n`
    const { error, said, plants } = await next(writeInput(t, spaces + line.repeat(400)))
    t.error(error)
    t.strictSame(said, [])
    t.strictSame(new Set(plants.map(({ name, tag }) => name + tag)), new Set([`${tree}é`]))
    t.equal(plants.length, 400)
  }
})

test('a compressed input is known again by records that end with a chunk of it', async (t) => {
  // Chunks of what is decompressed have 128 KiB. The first fault begins one, and a whole one follows.
  const lineBytes = 64
  const rows = (count: number) => `${'a'.repeat(lineBytes - 2)},\n`.repeat(count)
  const start = `name,tag\n${'a'.repeat(lineBytes - 'name,tag\n,\n'.length)},\n`
  const before = start + rows((2 * 128 * 1024) / lineBytes - 1)
  const make = (row: string) => gzipSync(`${before}${row}\n${rows(4096)}`)
  const url = await sqlite.createDatabase(t)
  const path = writeInput(t, make('a"b,'))
  t.match(await runImport(url, path), { error: { line: 4098 } })
  writeFileSync(path, make('a b,'))
  t.match(await runImport(url, path, { resume: true }), { result: { skipped: 4096, added: 4097 } })
})
