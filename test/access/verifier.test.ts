// Verdicts on tokens: how long they are cached, how many tokens are looked up at once, and when uses are recorded.
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { TokenTable } from '../../src/store/engine.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { createToken } from '../../src/tokens/tokens.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { sqlite } from '../support/engines.ts'
import { collectLines, open as openStore, silent } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { idOf } from './start.ts'

/**
 * A verifier with a monotonic clock and a wall clock that tests set, on a store whose parts `change` replaces.
 * `calls`: how often a token was looked up, and its use recorded.
 */
async function open(
  t: Test,
  change: (table: TokenTable) => Partial<TokenTable> = () => ({}),
  logger = silent,
) {
  const store = await openStore(t, await sqlite.createDatabase(t), { logger })
  const clock = { ms: 1_000_000_000_000, wallOffsetMs: 0 }
  const now = () => clock.ms + clock.wallOffsetMs
  const changed: TokenTable = Object.assign(Object.create(store.tokens), change(store.tokens))
  const calls = { find: 0, touch: 0 }
  const table: TokenTable = Object.assign(Object.create(changed), {
    find(id: string) {
      calls.find++
      return changed.find(id)
    },
    touch(...use: Parameters<TokenTable['touch']>) {
      calls.touch++
      return changed.touch(...use)
    },
  })
  const create = async (name: string, expiresAt: number | null = null) =>
    (await createToken(store.tokens, { name, expiresAt, createdAt: now() })) as string
  const revoke = (text: string) => table.revoke(idOf(text), now())
  const verify = makeVerifier(table, { accessTokens: [], logger, now, monotonicNow: () => clock.ms })
  return { store, clock, create, revoke, verify, calls }
}

test('a verdict is cached for seconds, whether the token is valid or not', async (t) => {
  const { clock, create, revoke, verify, calls } = await open(t)
  const text = await create('a')
  for (let n = 0; n < 10; n++) t.ok(await verify(text))
  t.notOk(verify(text) instanceof Promise, 'a cached verdict needs no promise')
  t.equal(calls.find, 1)
  await revoke(text)
  clock.ms += 5000
  for (let n = 0; n < 10; n++) t.equal(await verify(text), undefined)
  t.equal(calls.find, 2)
  const { token: unknown } = makeToken()
  for (let n = 0; n < 10; n++) t.equal(await verify(unknown), undefined)
  t.equal(calls.find, 3)
  const short = await create('b', clock.ms + 500)
  t.ok(await verify(short))
  clock.ms += 500
  t.equal(await verify(short), undefined, 'a verdict is not cached beyond the expiry')
})

const hourMs = 3_600_000

test('refuses a token soon after it is revoked, even if the wall clock was set back', async (t) => {
  const { clock, create, revoke, verify } = await open(t)
  const text = await create('a')
  t.ok(await verify(text))
  clock.wallOffsetMs = -hourMs
  t.ok(await revoke(text))
  clock.ms += 5000
  t.equal(await verify(text), undefined)
})

test('accepts an expired token again soon after the wall clock is corrected', async (t) => {
  const { clock, create, verify } = await open(t)
  const text = await create('a', clock.ms + hourMs / 2)
  t.ok(await verify(text))
  clock.wallOffsetMs = hourMs
  clock.ms += 5000
  t.equal(await verify(text), undefined)
  clock.wallOffsetMs = 0
  clock.ms += 5000
  t.ok(await verify(text))
})

test('a malformed token, or one with a wrong checksum, is refused without a look-up', async (t) => {
  const { verify, calls } = await open(t)
  const { token: good } = makeToken()
  const other = good.slice(0, 20) + (good[20] === '0' ? '1' : '0') + good.slice(21)
  for (const text of ['', good.slice(0, -1), `${good}0`, ` ${good}`, good.replace('plant_', 'tree_'), other])
    t.equal(await verify(text), undefined)
  t.equal(calls.find, 0)
  await verify(good)
  t.equal(calls.find, 1)
})

test('looks up a token of many concurrent requests once, and refuses too many unknown tokens with 503', async (t) => {
  const going = Promise.withResolvers<void>()
  let isSlow = false
  const { clock, create, verify, calls } = await open(t, (table) => ({
    async find(id) {
      if (isSlow) await going.promise
      return table.find(id)
    },
  }))
  const known = await create('known')
  await verify(known)
  clock.ms += 5000
  isSlow = true
  calls.find = 0
  const one = makeToken().token
  const same = Array.from({ length: 1000 }, () => verify(one))
  t.equal(calls.find, 1)
  const others = Array.from({ length: 499 }, () => verify(makeToken().token))
  t.throws(() => verify(makeToken().token), { name: 'StoreUnavailable', outcome: 'overloaded' })
  const before = verify(known)
  t.equal(verify('junk'), undefined, 'junk is refused at once')
  going.resolve()
  t.ok(await before, 'a token that was valid before is looked up')
  await Promise.all([...same, ...others])
  t.equal(await verify(makeToken().token), undefined, 'further tokens are looked up again')
})

test('does not cache a failed look-up, nor count it as pending', async (t) => {
  let isBroken = true
  const { create, verify } = await open(t, (table) => ({
    find: (id) => (isBroken ? Promise.reject(new Error('no database')) : table.find(id)),
  }))
  const text = await create('a')
  const attempt = async () => verify(makeToken().token)
  for (let round = 0; round < 3; round++) {
    const all = await Promise.allSettled(Array.from({ length: 500 }, attempt))
    t.ok(all.every((one) => one.status === 'rejected' && one.reason.message === 'no database'))
  }
  await t.rejects(Promise.resolve(verify(text)), { message: 'no database' })
  isBroken = false
  t.ok(await verify(text))
})

test('the age of a verdict counts from the start of its look-up', async (t) => {
  const { clock, create, verify } = await open(t, (table) => ({
    async find(id) {
      const found = await table.find(id)
      clock.ms += 1500
      return found
    },
  }))
  const grant = await verify(await create('a'))
  t.equal(grant?.untilMs, clock.ms + 500)
})

test('records the use of a token once per minute', async (t) => {
  const { store, clock, create, verify, calls } = await open(t)
  const text = await create('a')
  const noted = async () => (await store.tokens.all())[0]?.lastUsedAt
  t.equal(await noted(), null)
  const first = clock.ms
  await Promise.all(Array.from({ length: 1000 }, () => verify(text)))
  await until(async () => (await noted()) === first)
  for (let n = 0; n < 10; n++) {
    clock.ms += 5900
    await verify(text)
  }
  t.equal(calls.touch, 1)
  clock.ms = first + 61_000
  await verify(text)
  await until(async () => (await noted()) === clock.ms)
  t.equal(calls.touch, 2)
  clock.wallOffsetMs = -hourMs
  clock.ms += 5000
  await verify(text)
  await until(async () => (await noted()) === clock.ms - hourMs)
})

test('records uses of many tokens one at a time', async (t) => {
  let [running, most, noted] = [0, 0, 0]
  const { create, verify } = await open(t, (table) => ({
    async touch(...change) {
      most = Math.max(most, ++running)
      await table.touch(...change)
      running--
      noted++
    },
  }))
  const texts = await Promise.all(Array.from({ length: 20 }, (_, n) => create(`token ${n}`)))
  await Promise.all(texts.map(verify))
  await until(async () => noted === texts.length)
  t.equal(most, 1)
})

test('records the use of a token once per minute even while a write is pending or has failed', async (t) => {
  const { logger, lines } = collectLines()
  const failing = Promise.withResolvers<void>()
  const { clock, create, verify, calls } = await open(t, () => ({ touch: () => failing.promise }), logger)
  const text = await create('a')
  for (let n = 0; n < 10; n++) {
    t.ok(await verify(text))
    clock.ms += 5000
  }
  t.equal(calls.touch, 1)
  for (let minute = 0; minute < 5; minute++) {
    clock.ms += 61_000
    await verify(text)
  }
  failing.reject(new Error('no database'))
  await setImmediate()
  t.equal(calls.touch, 2, 'only the last use waited')
  t.match(lines, [{ msg: 'the last use of a token could not be saved', token: idOf(text) }])
  t.ok(await verify(text), 'the token is still valid')
})

test('tokens have the documented form, and are random', async (t) => {
  const texts = Array.from({ length: 1000 }, () => makeToken().token)
  const form = /^plant_[0-9A-Za-z]{8}_([0-9A-Za-z]+)_[0-9A-Za-z]{6}$/
  const secrets = texts.map((text) => form.exec(text)?.[1] ?? '')
  t.equal(new Set(secrets).size, 1000)
  for (const { length } of secrets) if (length * Math.log2(62) < 190) t.fail(`${length} characters`)
  t.equal(new Set(secrets.join('')).size, 62, 'all characters occur')
})
