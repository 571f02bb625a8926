// The wall clock is set back and forth while a service runs: revocations and expiries still take effect in time.
import pino from 'pino'
import { type Test, test } from 'tap'
import { Tokens } from '../../src/tokens/tokens.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { openFile } from '../support/stores.ts'

const hourMs = 3_600_000
/** Revocations and expiries take effect in this time. */
const promisedMs = 5000

/** A verifier of the tokens of a store, with a wall clock and a monotonic one. */
async function start(t: Test) {
  const { store } = await openFile(t)
  const clock = { wallMs: 1_000_000_000_000, ms: 0 }
  const [now, monotonicNow] = [() => clock.wallMs, () => clock.ms]
  const tokens = new Tokens(store.tokens, now)
  const logger = pino({ level: 'silent' })
  return { clock, tokens, verify: makeVerifier(tokens, { accessTokens: [], logger, now, monotonicNow }) }
}

test('refuses a token soon after it is revoked, even if the clock was set back', async (t) => {
  const { clock, tokens, verify } = await start(t)
  const token = String(await tokens.create({ name: 'a' }))
  t.ok(await verify(token))
  clock.wallMs -= hourMs
  t.ok(await tokens.revoke(token.split('_')[1] as string))
  clock.ms += promisedMs
  t.equal(await verify(token), undefined)
})

test('accepts an expired token again soon after the clock is corrected', async (t) => {
  const { clock, tokens, verify } = await start(t)
  const token = String(await tokens.create({ name: 'a', expiresAt: clock.wallMs + hourMs / 2 }))
  t.ok(await verify(token))
  clock.wallMs += hourMs
  clock.ms += promisedMs
  t.equal(await verify(token), undefined)
  clock.wallMs -= hourMs
  clock.ms += promisedMs
  t.ok(await verify(token))
})
