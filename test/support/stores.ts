// Stores on a SQLite file for tests at the seam: opened, filled, and asked until they are well again.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import type { Test } from 'tap'
import type { Entry, Outcome } from '../../src/store/engine.ts'
import type { FailedOutcome } from '../../src/store/errors.ts'
import { createDirectory } from './engines.ts'
import { openStore, type Store } from './sql-store.ts'

/** Each line of the log, parsed. */
export type LogLine = { level: number; msg: string }
export type SqliteFile = { store: Store; path: string; directory: string; lines: LogLine[] }

/** Opens a store on a new file, or on the one at `path`; it closes when the test ends. */
export async function openFile(t: Test, given?: string): Promise<SqliteFile> {
  const directory = createDirectory(t)
  const path = given ?? join(directory, 'plants.db')
  const lines: LogLine[] = []
  const logger = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
  const store = await openStore(`file:${path}`, { logger })
  t.teardown(() => store.close())
  return { store, path, directory, lines }
}

export function entry(name: string, id?: number): Entry {
  return { item: JSON.stringify({ name, tag: '' }), id }
}

/** Adds a plant for each name. */
export function add({ log }: Store, ...names: string[]): Promise<Outcome[]> {
  return log.append(names.map((name) => entry(name)))
}

/** The names of all plants. */
export async function listNames({ log }: Store): Promise<string[]> {
  const { position, mark } = await log.head()
  const array = await log.read(0, position, mark)
  return (JSON.parse(String(array)) as { name: string }[]).map(({ name }) => name)
}

/** What an error must match. */
export function unavailable(outcome: FailedOutcome) {
  return { name: 'StoreUnavailable', outcome }
}

const patienceMs = 20_000
const pauseMs = 20

/** Resolves when the store can be written again; it must get there by itself. */
export async function recovered(store: Store): Promise<void> {
  const endMs = performance.now() + patienceMs
  for (;;) {
    const fault = await store.ready().then(
      () => undefined,
      (error: Error) => error,
    )
    if (fault === undefined) return
    if (performance.now() > endMs) throw fault
    await delay(pauseMs)
  }
}
