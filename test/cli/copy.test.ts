// copy: a whole store moves to another database and back, however often it is cut short.
import { test } from 'tap'
import { count } from '../../src/runtime/count.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { beginCopy, between, copy, fill, open, openRenamed, sumLog } from '../support/copies.ts'
import { engines, findEngine, sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'
import { listTokens } from '../support/tokens.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const plants = 10_000

/** One at least: a store begins an epoch when it is made. */
async function readEpochs({ sql }: Store): Promise<unknown[]> {
  const rows = await sql.select('SELECT number, epoch, start FROM epochs ORDER BY number')
  if (rows.length === 0) throw new Error('there is no epoch')
  return rows.map((row) => ({ ...row }))
}

test('a store goes from SQLite to PostgreSQL and back, killed twice on each way', { skip }, async (t) => {
  const urls = await Promise.all([sqlite, postgres, sqlite].map(({ createDatabase }) => createDatabase(t)))
  const [first, middle, last] = urls as [string, string, string]
  const original = await open(t, first)
  await fill(original, plants)
  const checksum = await sumLog(original)
  for (const way of [
    { from: first, to: middle },
    { from: middle, to: last },
  ]) {
    let held = 0
    for (const part of [1 / 3, 2 / 3]) {
      const { child, ended, target } = await beginCopy(t, way, part * plants)
      child.kill('SIGKILL')
      t.match(await ended, { signal: 'SIGKILL' })
      held = (await target.log.head()).position
      t.ok(held < plants, `at ${held} plants`)
    }
    const { code, stdout, stderr } = await copy(way.from, way.to)
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.equal(
      stdout,
      `copied ${count(plants - held, 'plant')} and 1 token ${between(way.from, way.to)}; both hold ${count(plants, 'plant')} now, SHA-256 ${checksum}\n`,
    )
  }
  const copied = await open(t, last)
  t.equal(await sumLog(copied), checksum)
  t.equal(copied.id, original.id)
  t.strictSame(await listTokens(copied.sql), await listTokens(original.sql))
  t.strictSame(await copied.sql.select("SELECT key FROM meta WHERE key = 'copy'"), [], 'no mark is left')
  t.strictSame(await readEpochs(copied), await readEpochs(original), 'the epochs are the same')
})

for (const from of engines)
  for (const to of engines)
    test(`clients of ${from.name} notice nothing when it is ${to.name} that answers`, async (t) => {
      const [before, after] = [await from.createDatabase(t), await to.createDatabase(t)]
      const source = await startApp(t, before)
      const headers = { authorization: `Bearer ${await fill(source.store, 10)}` }
      const plant = { name: 'Fern', tag: '', id: 7 }
      t.match(await request(`${source.url}/plants`, { body: plant, headers }), { status: 200 })
      const page = await request(`${source.url}/plants?limit=4`, { headers })
      const next = /<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1]
      const etag = String(page.headers.get('etag'))
      t.match(await copy(before, after), { code: 0, stderr: '' })

      const target = await startApp(t, after)
      const list = (path: string, more = {}) =>
        request(target.url + path, { headers: { ...headers, ...more } })
      t.match(await list('/plants?limit=4', { 'if-none-match': etag }), { status: 304 }, 'ETags are valid')
      t.equal((await list('/plants?limit=4')).text, page.text)
      t.equal(
        (await list(String(next))).text,
        (await request(source.url + next, { headers })).text,
        'so are cursors',
      )
      const post = (body: object) => request(`${target.url}/plants`, { body, headers })
      t.match(await post(plant), { status: 200 }, 'a retry is known')
      t.match(await post({ ...plant, tag: 'x' }), { status: 409 }, 'and so is a conflict')
      t.equal((await target.store.log.head()).position, 11)
      t.match(await post({ name: 'Moss', tag: '' }), { status: 200 })
      t.equal((await list('/plants')).text.includes('Moss'), true)
    })

test('a source in use is copied to its end, and again when it has grown', { skip }, async (t) => {
  const [from, to] = [await sqlite.createDatabase(t), await postgres.createDatabase(t)]
  const source = await open(t, from)
  await fill(source, 5000)
  const { ended, output } = await beginCopy(t, { from, to })
  await fill(source, 500)
  t.match(await ended, { code: 0 })
  const where = between(from, to)
  t.ok(output().stdout.startsWith(`copied 5,500 plants and 2 tokens ${where}; both hold 5,500 plants now`))
  await fill(source, 5)
  const checksum = await sumLog(source)
  for (const added of [5, 0])
    t.match(await copy(from, to), {
      code: 0,
      stdout: `copied ${added} plants and 3 tokens ${where}; both hold 5,505 plants now, SHA-256 ${checksum}\n`,
    })
})

for (const engine of engines)
  test(`tokens copied into ${engine.name} again: what was revoked in either store stays so`, async (t) => {
    const [from, to] = [await sqlite.createDatabase(t), await engine.createDatabase(t)]
    const source = await open(t, from)
    const target = await openRenamed(t, to, source)
    for (const name of ['a', 'b', 'c'])
      await new Tokens(source.tokens, () => 1).create({ name, expiresAt: 2 ** 52 })
    t.match(await copy(from, to), {
      code: 0,
      stdout: /^copied 0 plants and 3 tokens from .*; both hold 0 plants/,
    })
    const [a, b, c] = (await listTokens(source.sql)).map(({ id }) => id) as [string, string, string]
    await new Tokens(source.tokens, () => 3).revoke(a)
    await new Tokens(target.tokens, () => 4).revoke(b)
    await new Tokens(source.tokens, () => 100_000).touch(c)
    t.match(await copy(from, to), { code: 0 })
    const tokens = new Map((await listTokens(target.sql)).map((token) => [token.id, token]))
    t.match(tokens.get(a), { createdAt: 1, expiresAt: 2 ** 52, revokedAt: 3 })
    t.match(tokens.get(b), { revokedAt: 4 })
    t.match(tokens.get(c), { revokedAt: null, lastUsedAt: 100_000 })
  })

test('a store of 1.0.0 that nothing was added to since has no epochs; its copy has its own', {
  skip,
}, async (t) => {
  const urls = await Promise.all([sqlite, postgres].map(({ createDatabase }) => createDatabase(t)))
  const [from, to] = urls as [string, string]
  const source = await open(t, from)
  await fill(source, 10)
  await source.sql.execute('DELETE FROM epochs')
  t.match(await copy(from, to), {
    code: 0,
    stdout: /^copied 10 plants and 1 token from .*, made now; both hold 10 plants/,
  })
  t.ok(await readEpochs(await open(t, to)))
})
