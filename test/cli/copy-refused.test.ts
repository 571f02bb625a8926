// copy: what it refuses, and how it stops. Nothing is lost by it: a target that holds other data stays as it was.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import tap, { before, type Test, test } from 'tap'
import { copyStore, openTarget } from '../../src/maintenance/copy/copy-store.ts'
import type { StoreView } from '../../src/store/engine.ts'
import { openView } from '../../src/store/engines.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { startCluster } from '../support/cluster.ts'
import { runCommand } from '../support/commands.ts'
import { beginCopy, copy, fill, open, openRenamed, sumLog } from '../support/copies.ts'
import {
  createDirectory,
  type Engine,
  engines,
  findEngine,
  sharedServer,
  sqlite,
} from '../support/engines.ts'
import { openStore, type Store } from '../support/sql-store.ts'
import { listTokens } from '../support/tokens.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')

/** 100 plants that are only read. */
let url: string
let source: Store
before(async () => {
  url = await sqlite.createDatabase(tap)
  source = await open(tap, url)
  await fill(source, 100)
})

/** A target that holds something, made beside a source of 100 plants; `begun`: a copy of it has begun there before. */
const targets: [title: string, begun: boolean, make: (target: Store) => Promise<unknown>, reason: RegExp][] =
  [
    ['holds plants', false, ({ log }) => log.append([{ item: '{}', id: undefined }]), /not of --from/],
    [
      'was opened by a service once',
      false,
      ({ tokens }) => new Tokens(tokens).createFirst(),
      /not of --from/,
    ],
    [
      'is a copy that is longer',
      true,
      ({ log }) => log.append(Array.from({ length: 101 }, () => ({ item: '{}', id: undefined }))),
      /--to holds 101 plants, --from only 100/,
    ],
    [
      'is a copy with another plant',
      true,
      ({ log }) => log.append([{ item: '{"name":"weed","tag":""}', id: undefined }]),
      /from plant 1 on, --to is no copy/,
    ],
    [
      'is a copy with a token of its own',
      true,
      ({ tokens }) => new Tokens(tokens).createFirst(),
      /--to holds the token 00000000/,
    ],
  ]

async function readAll({ sql, log }: Store) {
  const meta = await sql.select("SELECT value FROM meta WHERE key = 'store'")
  return { meta, head: (await log.head()).position, tokens: await listTokens(sql) }
}

for (const engine of engines)
  for (const [title, begun, make, reason] of targets)
    test(`${engine.name}: a target that ${title} is refused and left as it was`, async (t) => {
      const [from, to] = [url, await engine.createDatabase(t)]
      const target = begun ? await openRenamed(t, to, source) : await open(t, to)
      await make(target)
      const before = await readAll(target)
      const { code, stdout, stderr } = await copy(from, to)
      t.strictSame({ code, stdout }, { code: 1, stdout: '' })
      t.match(stderr, /^plant-store: [^\n]+\n$/)
      t.match(stderr, reason)
      t.strictSame(await readAll(target), before)
    })

test('a standby, which may lag behind its primary, is not copied', async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  await open(t, cluster.primary.url())
  const [standby] = cluster.standbys
  const { code, stderr } = await copy(String(standby?.url()), await sqlite.createDatabase(t))
  t.same([code, stderr], [1, 'plant-store: --from is a standby: name its primary\n'])
})

for (const engine of engines)
  test(`${engine.name}: a store is not copied into itself`, async (t) => {
    const url = await engine.createDatabase(t)
    const store = await open(t, url)
    await fill(store, 10)
    const { code, stderr } = await copy(url, url.replace('//postgres@127.0.0.1', '//postgres@localhost'))
    t.strictSame(
      { code, stderr },
      { code: 1, stderr: 'plant-store: --from and --to are the same database\n' },
    )
    t.strictSame(await store.sql.select("SELECT key FROM meta WHERE key = 'copy'"), [])
    t.equal((await store.log.head()).position, 10)
  })

test('a store that cannot be opened is reported in one line without its password', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [missing, text] = [join(directory, 'no', 'plants.db'), join(directory, 'text.db')]
  writeFileSync(text, 'no database')
  const good = url
  const server = await sharedServer()
  const gone = server.url('nothing').replace('postgres@', 'postgres:s3cret@')
  const cases: [from: string, to: string, code: number, reason: RegExp][] = [
    [`file:${missing}`, good, 1, /there is no file [^\n]+plants\.db/],
    [`file:${text}`, good, 1, /not a plant store/],
    [good, `file:${text}`, 1, /not a plant store/],
    [gone, good, 1, /the database of --from: .*database "nothing" does not exist/],
    [good, gone, 1, /the database of --to: .*database "nothing" does not exist/],
    [good, 'postgres://a:s3cret@h:x/plants', 2, /--to must be like postgres:/],
    ['mysql://a:s3cret@h/plants', good, 2, /--from must start with file:/],
    [good, 'postgre://a:s3cret@h/plants', 2, /--to must start with file:/],
    [good, '', 2, /--to must start with file:/],
  ]
  await Promise.all(
    cases.map(async ([from, to, expected, reason]) => {
      const { code, stdout, stderr } = await copy(from, to)
      t.strictSame({ code, stdout }, { code: expected, stdout: '' }, String(reason))
      t.match(stderr, reason)
      t.notMatch(stderr, /s3cret|\n {4}at |DATABASE_URL/)
    }),
  )
  t.notOk(existsSync(join(directory, 'no')), 'nothing was made')
  for (const args of [[], ['--from', good], ['--from', good, '--to', good, '--batch', '0']]) {
    t.match(await runCommand(['copy', ...args]), { code: 2, stderr: /--to|--from|from 1 to 20000/ })
  }
})

/** What befalls a copy on its way from `from` to `to`, and how it is made good again. */
const mishaps: [
  title: string,
  way: [from: Engine, to: Engine],
  strike: (source: Store, target: Store) => Promise<unknown>,
  mend: (source: Store, target: Store) => Promise<unknown>,
  reason: RegExp,
][] = [
  [
    'whose source fails',
    [postgres, sqlite],
    ({ sql }) => sql.execute('ALTER TABLE plants RENAME TO away'),
    ({ sql }) => sql.execute('ALTER TABLE away RENAME TO plants'),
    /plant-store: the copy was cut short: [^\n]+ Run it again to go on\.\n$/,
  ],
  [
    'whose target fails',
    [sqlite, sqlite],
    (_, { sql }) =>
      sql.execute("CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'full'); END"),
    (_, { sql }) => sql.execute('DROP TRIGGER full'),
    /plant-store: the copy was cut short: full\. Run it again to go on\.\n$/,
  ],
  [
    'that another one takes over',
    [sqlite, postgres],
    (_, { sql }) => sql.execute("UPDATE meta SET value = 'another' WHERE key = 'copy'"),
    async () => {},
    /^plant-store: another copy to --to has begun\n$/,
  ],
]

for (const [title, [first, second], strike, mend, reason] of mishaps)
  test(`a copy ${title} stops with one line and goes on when it is run again`, async (t) => {
    const [from, to] = [await first.createDatabase(t), await second.createDatabase(t)]
    const source = await open(t, from)
    await fill(source, 10_000)
    const { ended, output, target } = await beginCopy(t, { from, to })
    await strike(source, target)
    t.match(await ended, { code: 1 })
    t.match(output(), { stdout: '', stderr: reason })
    await mend(source, target)
    t.match(await copy(from, to), { code: 0, stderr: '' })
    t.equal(await sumLog(target), await sumLog(source))
  })

/** What makes a target keep a plant in other words than it was told. */
const falsifiers: Record<string, (target: Store) => Promise<unknown>> = {
  SQLite: async ({ sql }) => {
    await sql.execute('DROP TRIGGER plants_no_update')
    await sql.execute(`CREATE TRIGGER odd AFTER INSERT ON plants WHEN new.position = 100
      BEGIN UPDATE plants SET item = '{"name":"weed","tag":""}' WHERE position = 100; END`)
  },
  PostgreSQL: async ({ sql }) => {
    await sql.execute(`CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF new.position = 100 THEN new.item := '{"name":"weed","tag":""}'; END IF; RETURN new; END $$`)
    await sql.execute('CREATE TRIGGER odd BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION odd()')
  },
}

for (const engine of engines)
  test(`${engine.name}: a plant that the target stores differently is found`, async (t) => {
    const [from, to] = [url, await engine.createDatabase(t)]
    await falsifiers[engine.name]?.(await open(t, to))
    const { code, stdout, stderr } = await copy(from, to)
    t.strictSame({ code, stdout }, { code: 1, stdout: '' })
    t.match(stderr, /^plant-store: from plant 1 on, --to is no copy of --from[^\n]*\n$/)
    t.equal((await (await open(t, to)).log.head()).position, 100, 'all of them were added')
  })

test('a plant that somebody else adds to the target is found', { skip }, async (t) => {
  const [from, to] = [await sqlite.createDatabase(t), await postgres.createDatabase(t)]
  await fill(await open(t, from), 10_000)
  const { ended, output, target } = await beginCopy(t, { from, to })
  await target.log.append([{ item: '{"name":"weed","tag":""}', id: undefined }])
  t.match(await ended, { code: 1 })
  t.match(output().stderr, /^plant-store: from plant \d+ on, --to is no copy of --from; or something else/)
})

/** The source, and a new target. */
async function openPair(t: Test) {
  const view = await openView(url)
  t.teardown(() => view.close())
  const to = await sqlite.createDatabase(t)
  const target = await openTarget(view, () => openStore(to, { logger: pino({ level: 'silent' }) }))
  t.teardown(() => target.close())
  return { view, target }
}

test('a plant that the target gets behind the last one of the source is found', async (t) => {
  const { view, target } = await openPair(t)
  const source: StoreView = Object.assign(Object.create(view), {
    async plants(...range: Parameters<StoreView['plants']>) {
      const plants = await view.plants(...range)
      if (plants.length === 0) await target.log.append([{ item: '{"name":"weed","tag":""}', id: undefined }])
      return plants
    },
  })
  const { signal } = new AbortController()
  await t.rejects(copyStore(source, target, { batchPlants: 50, signal, onProgress() {} }), {
    message: /^from plant 101 on, --to is no copy of --from; or something else writes to it$/,
  })
})

test('a token that the target gets while plants are copied is not taken for one of the source', async (t) => {
  const { view, target } = await openPair(t)
  let made: Promise<unknown> | undefined
  const onProgress = () => {
    made ??= new Tokens(target.tokens).createFirst()
  }
  const { signal } = new AbortController()
  await t.rejects(copyStore(view, target, { batchPlants: 1, signal, onProgress }), {
    message: '--to holds the token 00000000, which is not of --from',
  })
  await made
})
