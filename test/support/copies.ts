// Stores to copy, copies under way, and what a copy must come to.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import type { Test } from 'tap'
import { nameDatabase } from '../../src/cli/database-name.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { runCommand } from './commands.ts'
import { spawnCli } from './service.ts'
import { openStore, type Store } from './sql-store.ts'

/** Opens the store at a URL; it closes when the test ends. */
export async function open(t: Test, url: string): Promise<Store> {
  const store = await openStore(url, { logger: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  return store
}

/** Adds plants of many kinds, with and without an id, and issues a token. Resolves to the token. */
export async function fill({ log, tokens }: Store, count: number): Promise<string> {
  const names = ['Monstera', 'Ficus "Tineke" \\', 'ヤシ 🌴', '\u2028']
  const { position: from } = await log.head()
  await log.append(
    Array.from({ length: count }, (_, n) => ({
      item: JSON.stringify({ name: `${names[n % 4]} ${from + n}`, tag: n % 3 ? 'indoor' : '' }),
      id: n % 2 ? undefined : Number.MAX_SAFE_INTEGER - from - n,
    })),
  )
  return new Tokens(tokens).create({ name: `gardener ${from}` })
}

/** SHA-256 over the whole log as the command is to form it: a line a plant, its fields between tabs. */
export async function sumLog({ sql }: Store): Promise<string> {
  const rows = await sql.select('SELECT position, id, item FROM plants ORDER BY position')
  const lines = rows.map(({ position, id, item }) => [position, id, item].join('\t'))
  return createHash('sha256')
    .update(`${lines.join('\n')}\n`)
    .digest('hex')
}

/** Runs a copy to its end. */
export function copy(from: string, to: string) {
  return runCommand(['copy', '--from', from, '--to', to, '--quiet'])
}

/** What a copy says of the two databases. */
export function between(from: string, to: string): string {
  return `from ${nameDatabase(from)} into ${nameDatabase(to)}`
}

/** Opens an empty store under the name of another's, as a copy of it has begun to. */
export async function openRenamed(t: Test, url: string, { id }: Store): Promise<Store> {
  const empty = await openStore(url, { logger: pino({ level: 'silent' }) })
  await empty.sql.execute("UPDATE meta SET value = $1 WHERE key = 'store'", [id])
  await empty.close()
  return open(t, url)
}

/** A copy takes as long for a few batches. */
const lookMs = 5

/**
 * Starts a copy in small batches and resolves when the target holds more than `held` plants; many batches are still to
 * come.
 */
export async function beginCopy(t: Test, urls: { from: string; to: string }, held = 0) {
  const source = await open(t, urls.from)
  const target = await openRenamed(t, urls.to, source)
  const running = spawnCli(t, ['copy', '--from', urls.from, '--to', urls.to, '--quiet', '--batch', '50'])
  let over = false
  void running.ended.then(() => (over = true))
  while ((await target.log.head()).position <= held) {
    if (over) throw new Error(`the copy ended too early: ${running.output().stderr}`)
    await sleep(lookMs)
  }
  return { ...running, target }
}
