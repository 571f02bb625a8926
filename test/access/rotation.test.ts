// Names of tokens, which are unique among valid ones, and rotation, in every engine.
import { type Test, test } from 'tap'
import type { Token } from '../../src/store/engine.ts'
import { createToken, isValidAt, type NewToken, rotateToken } from '../../src/tokens/tokens.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { runCommand } from '../support/commands.ts'
import { copy, openRenamed } from '../support/copies.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { open as openStore, silent } from '../support/stores.ts'
import { idOf } from './start.ts'

const dayMs = 86_400_000
const startMs = 1_700_000_000_000

/** A new store with a clock that tests set. */
async function open(t: Test, engine: Engine) {
  const url = await engine.createDatabase(t)
  const store = await openStore(t, url)
  const clock = { ms: startMs }
  const { tokens } = store
  const find = async (id: string) => (await tokens.find(id)) as Token
  const create = async (token: NewToken) =>
    (await createToken(tokens, { createdAt: clock.ms, ...token })) as string
  const rotate = async (id: string, overlapMs = dayMs) =>
    (await rotateToken(tokens, await find(id), { overlapMs, now: clock.ms })) as Rotated
  const revoke = (id: string) => tokens.revoke(id, clock.ms)
  return { url, store, clock, find, create, rotate, revoke }
}

type Rotated = NonNullable<Awaited<ReturnType<typeof rotateToken>>>

for (const engine of engines) {
  test(`${engine.name}: no two valid tokens have the same name`, async (t) => {
    const { store, clock, create, revoke } = await open(t, engine)
    await create({ name: 'a', expiresAt: startMs + 10 })
    t.equal(await create({ name: 'a' }), undefined)
    clock.ms += 10
    const next = await create({ name: 'a' })
    t.equal(await create({ name: 'a' }), undefined, 'an expired token does not count')
    await revoke(idOf(next))
    await create({ name: 'a' })
    await create({ name: 'A' })
    const all = await store.tokens.all()
    t.same([all.length, all.filter(isValidAt(clock.ms)).length], [4, 2])
  })

  test(`${engine.name}: creates one of several concurrent tokens with the same name`, async (t) => {
    const { url, store } = await open(t, engine)
    const other = await openStore(t, url)
    const all = [store, other, store, other]
    const made = await Promise.all(all.map(({ tokens }) => createToken(tokens, { name: 'a' })))
    t.equal(made.filter((text) => text !== undefined).length, 1)
    t.equal((await store.tokens.all()).length, 1)
  })

  test(`${engine.name}: rotation creates a token with the same scopes and lifetime, and the old one expires after the overlap`, async (t) => {
    const { store, clock, create, find, rotate } = await open(t, engine)
    const now = () => clock.ms
    const verify = makeVerifier(store.tokens, { accessTokens: [], logger: silent, now, monotonicNow: now })
    const former = await create({ name: 'reader', scopes: ['plants:read'], expiresAt: startMs + 90 * dayMs })
    clock.ms += 10 * dayMs
    const { id, token, expiresAt, formerExpiresAt } = await rotate(idOf(former))
    t.equal(idOf(token), id)
    t.match(await find(id), { name: 'reader', scopes: ['plants:read'], createdAt: clock.ms, revokedAt: null })
    t.equal(expiresAt, clock.ms + 90 * dayMs, 'it has the lifetime of the former token')
    t.equal((await find(id)).expiresAt, expiresAt)
    t.equal(formerExpiresAt, clock.ms + dayMs)
    t.ok((await verify(former)) && (await verify(token)), 'both are valid until then')
    t.equal(await create({ name: 'reader' }), undefined)
    clock.ms += dayMs
    t.equal(await verify(former), undefined)
    t.ok(await verify(token))
    t.equal(await create({ name: 'reader' }), undefined, 'the successor has the name')
    t.equal((await store.sql.select('SELECT id FROM tokens')).length, 2)
    const short = idOf(await create({ name: 'short', expiresAt: clock.ms + 1000 }))
    const ends = { formerExpiresAt: clock.ms + 1000, expiresAt: clock.ms + 1001 }
    t.match(await rotate(short), ends, 'an overlap does not extend the lifetime')
  })

  test(`${engine.name}: a token can be rotated once, then only its successor`, async (t) => {
    const { store, clock, create, find, rotate, revoke } = await open(t, engine)
    const first = idOf(await create({ name: 'a' }))
    clock.ms -= dayMs
    const [won, ...more] = (await Promise.all([rotate(first), rotate(first)])).filter((one) => one)
    t.same(more, [])
    t.equal(await rotate(first), undefined)
    const second = String(won?.id)
    const { id, expiresAt } = await rotate(second, 0)
    t.equal(expiresAt, null, 'the successor of a token that never expires never expires')
    t.equal((await find(second)).expiresAt, clock.ms, 'without an overlap, the former token expires at once')
    for (const ended of [second, idOf(await create({ name: 'past', expiresAt: clock.ms }))])
      t.equal(await rotate(ended), undefined, 'an expired token is not rotated')
    await revoke(id)
    t.equal(await rotate(id), undefined, 'a revoked token is not rotated')
    t.equal((await store.tokens.all()).length, 4)
    let again = idOf(await create({ name: 'b', expiresAt: clock.ms + 90 * dayMs }))
    clock.ms -= 100 * dayMs
    for (let round = 0; round < 3; round++) again = (await rotate(again)).id
    const { expiresAt: ends, createdAt } = await find(again)
    t.equal(Number(ends) - createdAt, 90 * dayMs, 'the lifetime, although the clock was set back')
  })

  test(`${engine.name}: after its successor is revoked, a token can be rotated again with its original lifetime`, async (t) => {
    const { clock, create, rotate, revoke } = await open(t, engine)
    const lasting = idOf(await create({ name: 'a' }))
    const ending = idOf(await create({ name: 'b', expiresAt: startMs + 90 * dayMs }))
    clock.ms += 1000
    const formerExpiresAt = clock.ms + dayMs
    for (const id of [lasting, ending]) await revoke((await rotate(id)).id)
    clock.ms += 1000
    t.match(await rotate(lasting), { expiresAt: null, formerExpiresAt })
    // While the clock was ahead.
    await revoke(idOf(await create({ name: 'b', createdAt: clock.ms + dayMs })))
    t.match(await rotate(ending), { expiresAt: clock.ms + 90 * dayMs, formerExpiresAt })
  })

  test(`expires a token copied into ${engine.name} that was rotated in either store`, async (t) => {
    const { url, store, create, rotate, clock } = await open(t, sqlite)
    const to = await engine.createDatabase(t)
    const target = await openRenamed(t, to, store)
    const make = async (name: string, expiresAt: number | null) => idOf(await create({ name, expiresAt }))
    const [a, b] = [await make('a', null), await make('b', null)]
    const [c, d] = [await make('c', startMs + 9 * dayMs), await make('d', startMs + 9 * dayMs)]
    const e = await make('e', null)
    t.match(await copy(url, to), { code: 0 })
    await rotate(a)
    await rotate(c)
    for (const id of [b, d]) await target.sql.execute('UPDATE tokens SET expires_at = 7 WHERE id = $1', [id])
    t.match(await copy(url, to), { code: 0 })
    const copied = new Map((await target.tokens.all()).map((token) => [token.id, token.expiresAt]))
    const ends = [a, b, c, d, e].map((id) => copied.get(id))
    t.same(ends, [clock.ms + dayMs, 7, clock.ms + dayMs, 7, null])
  })
}

test('token rotate prints only the new token; revoke and rotate accept a name, an id or the whole token', async (t) => {
  const { url: DATABASE_URL, create } = await open(t, sqlite)
  const run = (...args: string[]) => runCommand(['token', ...args], { DATABASE_URL })
  const first = await create({ name: 'a' })
  const { code, stdout, stderr } = await run('rotate', idOf(first))
  t.equal(code, 0)
  t.match(stdout, /^plant_\w{48}\n$/)
  const second = stdout.trim()
  t.match(stderr, new RegExp(`^${idOf(second)} replaces ${idOf(first)}, which expires at \\S+Z\\n$`))
  const ends = await create({ name: 'b', expiresAt: Date.now() + dayMs })
  const json = JSON.parse((await run('rotate', ends, '--overlap', '0s', '--json')).stdout)
  t.match(json, { id: idOf(json.token), expires: /Z$/, replaces: idOf(ends) })
  t.ok(Date.parse(json.replacedExpires) <= Date.now())
  t.match(await run('revoke', json.token), { code: 0 })

  await run('revoke', second)
  t.match(await run('revoke', 'a'), { code: 0, stdout: `revoked ${idOf(first)}\n` })
  const named = await create({ name: idOf(second) })
  t.match(await run('revoke', idOf(second)), { code: 1, stderr: idOf(named) }, 'a name may look like an id')

  const refusals: [args: string[], code: number, reason: RegExp][] = [
    [['revoke', json.token], 1, /^plant-store: token \w{8} is already revoked\n$/],
    [[first], 2, /unknown command '\*\*\*'/],
    [['rotate', first, '--overlap', first], 2, /Expected a duration such as 24h, or 0s/],
    [['rotate', first, '--overlap', '999999y'], 2, /Expected a duration/],
    [['create', '--name', 'c', '--expires', '+275760-09-13'], 2, /Expected a duration such as 90d/],
  ]
  for (const [args, expected, reason] of refusals) {
    const refused = await run(...args)
    t.match(refused, { code: expected, stdout: '', stderr: reason }, args.join(' '))
    for (const token of [first, second, json.token])
      t.notOk(refused.stderr.includes(token.slice(15, 47)), 'no secret is repeated')
  }
})
