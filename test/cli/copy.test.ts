// copy: moves a whole store to another database and back, even if it is interrupted. A refused target is unchanged.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import tap, { before, type Test, test } from 'tap'
import { count } from '../../src/cli/console.ts'
import { copyStore } from '../../src/commands/copy.ts'
import { nameDatabase } from '../../src/store/engines.ts'
import { runCommand } from '../support/commands.ts'
import { addToken, beginCopy, between, copy, fill, openRenamed, sumLog, verify } from '../support/copies.ts'
import { createDirectory, engines, findEngine, sharedServer, sqlite } from '../support/engines.ts'
import { open, type Store } from '../support/stores.ts'
import { tamper } from './damage.ts'
import { quickest } from './imports.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const plants = 10_000

const make = async (t: Test) => open(t, await sqlite.createDatabase(t))

/** A store of 100 plants that the tests only read. */
let url: string
let source: Store
before(async () => {
  url = await sqlite.createDatabase(tap)
  source = await open(tap, url)
  await fill(source, 100)
})

test('copies a store between SQLite and each engine despite a kill and a signal each way', async (t) => {
  const first = await sqlite.createDatabase(t)
  const chain = [...engines.toReversed(), sqlite].map(({ createDatabase }) => createDatabase(t))
  const others = await Promise.all(chain)
  const last = others.at(-1) as string
  const original = await open(t, first)
  await fill(original, plants)
  await original.log.append([], { notes: [{ key: 'import/a', before: '', value: 'how far it got' }] })
  const checksum = await sumLog(original)
  for (const [index, to] of others.entries()) {
    const way = { from: others[index - 1] ?? first, to }
    let held = 0
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const { child, ended, target } = await beginCopy(t, way, held + plants / 3)
      child.kill(signal)
      const stderr = signal === 'SIGKILL' ? /^$/ : /^plant-store: the copy was interrupted\. Run the /
      t.match(await ended, { signal, stdout: '', stderr })
      held = (await target.log.head()).position
      t.ok(held < plants, `at ${held} plants`)
    }
    const copied = `copied ${count(plants - held, 'plant')} and 1 token ${between(way.from, way.to)}`
    const stdout = `${copied}; both contain ${count(plants, 'plant')} now, SHA-256 ${checksum}\n`
    t.strictSame(await copy(way.from, way.to), { code: 0, stdout, stderr: '' })
  }
  t.match(await verify(last), { code: 0, plants, checksum, faultCount: 0 })
  const copied = await open(t, last)
  t.equal((await copied.sql.select("SELECT value FROM meta WHERE key = 'store'"))[0]?.value, original.id)
  t.strictSame(await copied.tokens.all(), await original.tokens.all())
  t.strictSame(await copied.notes(), await original.notes(), 'including the progress of imports')
  t.equal((await copied.log.head()).mark, (await original.log.head()).mark, 'lists keep their ETags')
})

test('copies a source in use, and copies later additions when it is run again', { skip }, async (t) => {
  const [from, to] = [await sqlite.createDatabase(t), await postgres.createDatabase(t)]
  const source = await open(t, from)
  await fill(source, 5000)
  const { ended } = await beginCopy(t, { from, to })
  await fill(source, 500)
  const { code, stdout } = await ended
  t.equal(code, 0)
  const where = between(from, to)
  t.ok(stdout.startsWith(`copied 5,500 plants and 2 tokens ${where}; both contain 5,500 plants now`))
  await fill(source, 5)
  const checksum = await sumLog(source)
  t.match(await copy(from, to), {
    code: 0,
    stdout: `copied 5 plants and 3 tokens ${where}; both contain 5,505 plants now, SHA-256 ${checksum}\n`,
  })
  const again = JSON.parse((await runCommand(['copy', '--from', from, '--to', to, '--json'])).stdout)
  const names = { from: nameDatabase(from), to: nameDatabase(to) }
  t.strictSame(again, { ...names, added: 0, tokens: 3, plants: 5505, checksum })
})

test('handles signals between two batches that are compared', async (t) => {
  const [source, target] = [await make(t), await make(t)]
  await fill(source, 100)
  await copyStore(source, target, { batch: 100, onProgress() {} })
  const turns = new Set<number>()
  let turn = 0
  const onProgress = () => turns.add(turn) && setImmediate(() => turn++)
  await copyStore(source, target, { batch: 10, onProgress })
  t.ok(turns.size > 9, `${turns.size} turns of the event loop`)
})

test('copies no note of an import that is ahead of the copied plants', async (t) => {
  const [source, target] = [await make(t), await make(t)]
  await fill(source, 10)
  const note = { key: 'import/x', value: '{}', before: '' }
  const notes = async () => {
    const { position } = await source.log.head()
    if (position === 10) await source.log.append([{ item: '{}', id: undefined }], { notes: [note] })
    return source.notes()
  }
  const busy = Object.create(source, { notes: { value: notes } })
  const options = { batch: 5, onProgress: () => {} }
  t.match(await copyStore(busy, target, options), { plants: 11, added: 11 })
  await source.log.append([], { notes: [{ ...note, before: '{}', value: '[]' }] })
  await copyStore(source, target, options)
  t.strictSame([...(await target.notes())], [['import/x', '[]']], 'a note that has changed since')
})

for (const damage of [
  `UPDATE plants SET item = '{"name":"b","tag":""}' WHERE position = 7`,
  'DELETE FROM plants WHERE position = 7',
])
  test(`does not copy a damaged store: ${damage}`, async (t) => {
    const [from, to] = [await sqlite.createDatabase(t), await sqlite.createDatabase(t)]
    await fill(await open(t, from), 10)
    await tamper(from, damage)
    const stderr = /^plant-store: --from is damaged: see npx plant-store verify\n$/
    t.match(await copy(from, to), { code: 1, stdout: '', stderr })
    t.equal((await (await open(t, to)).log.head()).position, 0)
  })

for (const engine of engines)
  test(`${engine.name}: keeps a token revoked if it is revoked in either store`, async (t) => {
    const [from, to] = [await sqlite.createDatabase(t), await engine.createDatabase(t)]
    const source = await open(t, from)
    const target = await openRenamed(t, to, source)
    for (const [index, name] of ['a', 'b', 'c'].entries())
      await addToken(source, name, { createdAt: index, expiresAt: 2 ** 52 })
    const stdout = /^copied 0 plants and 3 tokens from .*; both contain 0/
    t.match(await copy(from, to), { code: 0, stdout })
    const [a, b, c] = (await source.tokens.all()).map(({ id }) => id) as [string, string, string]
    await source.tokens.revoke(a, 3)
    await target.tokens.revoke(b, 4)
    await source.tokens.touch(c, 100_000, 0)
    t.match(await copy(from, to), { code: 0 })
    t.match(await target.tokens.all(), [
      { id: a, expiresAt: 2 ** 52, revokedAt: 3 },
      { id: b, revokedAt: 4 },
      { id: c, revokedAt: null, lastUsedAt: 100_000 },
    ])
  })

const addFirst = (target: Store) => addToken(target, 'first')
/** Targets that are not empty; `begun`: a copy of the source has been started there before. */
const targets: [title: string, begun: boolean, make: (target: Store) => Promise<unknown>, reason: RegExp][] =
  [
    ['holds plants', false, ({ log }) => log.append([{ item: '{}', id: undefined }]), /not in --from/],
    ['contains a token', false, addFirst, /not in --from/],
    [
      'is a copy that is longer',
      true,
      async ({ put, log }) => {
        await put(await source.plants(0, 100, 100))
        return log.append([{ item: '{}', id: undefined }])
      },
      /--to differs from --from after plant 100/,
    ],
    [
      'is a copy with the same plant from another commit',
      true,
      async ({ log }) => {
        const [plant] = await source.plants(0, 1, 1)
        return log.append([{ item: String(plant?.item), id: plant?.id ?? undefined }])
      },
      /--to differs from --from after plant 0,/,
    ],
    ['is a copy with an additional token', true, addFirst, /--to contains the token \w{8}/],
  ]

for (const [title, begun, make, reason] of targets)
  test(`refuses a target that ${title}, and leaves it unchanged`, async (t) => {
    const to = await quickest.createDatabase(t)
    const target = begun ? await openRenamed(t, to, source) : await open(t, to)
    await make(target)
    const readAll = async () => JSON.stringify([await target.log.head(), await target.tokens.all()])
    const before = await readAll()
    const refused = await copy(url, to)
    t.match(refused, { code: 1, stdout: '', stderr: reason })
    t.match(refused.stderr, /^plant-store: [^\n]+\n$/)
    t.strictSame(await readAll(), before)
  })

test('reports a store that cannot be opened in one line without its password', { skip }, async (t) => {
  const directory = createDirectory(t)
  const missing = `file:${join(directory, 'no', 'plants.db')}`
  const gone = (await sharedServer()).url('nothing').replace('postgres@', 'postgres:s3cret@')
  const cases: [from: string, to: string, reason: RegExp][] = [
    [missing, url, /no database file at [^\n]+plants\.db/],
    [gone, url, /database "nothing" does not exist/],
    [url, gone, /database "nothing" does not exist/],
    [url, 'postgres://a:s3cret@h:x/plants', /--to must look like postgres:/],
    ['mysql://a:s3cret@h/plants', url, /--from must start with file:/],
  ]
  for (const [from, to, reason] of cases) {
    const refused = await copy(from, to)
    t.match(refused, { code: 1, stdout: '', stderr: reason })
    t.notMatch(refused.stderr, /s3cret|\n {4}at |DATABASE_URL/)
  }
  t.notOk(existsSync(join(directory, 'no')), 'creates nothing')
  for (const args of [[], ['--from', url], ['--from', url, '--to', url, '--batch', '0']])
    t.match(await runCommand(['copy', ...args]), { code: 2, stderr: /--to|--from|from 1 to 20000/ })
})

const makeFull = "CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'full'); END"
/** Statements that break a running copy, and that repair it. */
const failures = [
  ['source', postgres, 'ALTER TABLE plants RENAME TO away', 'ALTER TABLE away RENAME TO plants', ''],
  ['target', sqlite, makeFull, 'DROP TRIGGER full', 'full'],
] as const

for (const [part, first, strike, mend, reason] of failures)
  test(`fails with one line if the ${part} fails, and resumes when it is run again`, {
    skip: first === postgres && skip,
  }, async (t) => {
    const [from, to] = [await first.createDatabase(t), await sqlite.createDatabase(t)]
    const source = await open(t, from)
    await fill(source, plants)
    const { ended, target } = await beginCopy(t, { from, to })
    const { sql } = part === 'source' ? source : target
    await sql.execute(strike)
    const stderr = new RegExp(`^plant-store: the copy failed: .*${reason}.* Run .* to resume, with .*\\.\n$`)
    t.match(await ended, { code: 1, stdout: '', stderr })
    await sql.execute(mend)
    t.match(await copy(from, to), { code: 0, stderr: '' })
    t.equal(await sumLog(target), await sumLog(source))
  })

test('detects a plant that the target stores differently', async (t) => {
  const to = await sqlite.createDatabase(t)
  const { sql } = await open(t, to)
  await sql.execute('DROP TRIGGER plants_no_update')
  await sql.execute(`CREATE TRIGGER odd AFTER INSERT ON plants WHEN new.position = 100
    BEGIN UPDATE plants SET item = '{"name":"weed","tag":""}' WHERE position = 100; END`)
  const stderr = /^plant-store: --to differs from --from after plant 0[^\n]*\n$/
  t.match(await copy(url, to), { code: 1, stdout: '', stderr })
})
