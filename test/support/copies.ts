// Stores with plants and tokens, running copies, and the checksum of a log.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { nameDatabase } from '../../src/store/engines.ts'
import { hashToken, makeToken } from '../../src/tokens/format.ts'
import { runCommand, spawnCli } from './commands.ts'
import { open, type Store } from './stores.ts'

/** Adds plants of many kinds, with and without an id, and a token. Resolves to the text of the token. */
export async function fill(store: Store, count: number): Promise<string> {
  const { position: from } = await store.log.head()
  const entries = Array.from({ length: count }, (_, n) => ({
    item: JSON.stringify({ name: `${names[n % 4]} ${from + n}`, tag: n % 3 ? 'indoor' : '' }),
    id: n % 2 ? undefined : Number.MAX_SAFE_INTEGER - from - n,
  }))
  // On a slow machine a larger batch would take longer than a store has for one.
  for (let n = 0; n < count; n += 20_000) await store.log.append(entries.slice(n, n + 20_000))
  return addToken(store, `gardener ${from}`)
}

const names = ['Monstera', 'Ficus "Tineke" \\', 'ヤシ 🌴', '\u2028']

/** Adds a token with all scopes. Resolves to its text. */
export async function addToken({ tokens }: Store, name: string, more: object = {}): Promise<string> {
  const { id, token } = makeToken()
  const times = { createdAt: Date.now(), expiresAt: null, lastUsedAt: null, revokedAt: null }
  const scopes = ['plants:read', 'plants:write']
  await tokens.add({ id, name, hash: hashToken(token), scopes, ...times, ...more })
  return token
}

/** The SHA-256 of the log that `copy` and `verify` print: one line per plant, with tabs between its fields. */
export async function sumLog({ sql }: Store): Promise<string> {
  const rows = await sql.select('SELECT position, id, mark, item FROM plants ORDER BY position')
  const lines = rows.map(({ position, id, mark, item }) => `${[position, id, mark, item].join('\t')}\n`)
  return createHash('sha256').update(lines.join('')).digest('hex')
}

/** Runs `verify` on a database. Resolves to its exit code and its report. */
export async function verify(url: string) {
  const { code, stdout, stderr } = await runCommand(['verify', '--json', '--quiet'], { DATABASE_URL: url })
  if (stderr) throw new Error(stderr)
  return { code, ...JSON.parse(stdout) }
}

/** Runs a copy to its end. */
export function copy(from: string, to: string) {
  return runCommand(['copy', '--from', from, '--to', to, '--quiet'])
}

/** The two databases in the output of a copy. */
export function between(from: string, to: string): string {
  return `from ${nameDatabase(from)} into ${nameDatabase(to)}`
}

/** Opens an empty store with the id of another one, like a copy that has just begun. */
export async function openRenamed(t: Test, url: string, { id }: Store): Promise<Store> {
  const empty = await open(t, url)
  await empty.adopt(id)
  return empty
}

/** The time of a few batches of a copy. */
const lookMs = 5

/**
 * Starts a copy in small batches, and resolves when the target has more than `held` plants, with many batches left.
 */
export async function beginCopy(t: Test, urls: { from: string; to: string }, held = 0) {
  const source = await open(t, urls.from)
  const target = await openRenamed(t, urls.to, source)
  const running = spawnCli(t, ['copy', '--from', urls.from, '--to', urls.to, '--quiet', '--batch', '50'])
  let over = false
  void running.ended.then(() => (over = true))
  while ((await target.log.head()).position <= held) {
    if (over) throw new Error(`the copy ended too early: ${(await running.ended).stderr}`)
    await sleep(lookMs)
  }
  return { ...running, target }
}
