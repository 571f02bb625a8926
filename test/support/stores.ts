// Stores that tests open and fill, stores that fail, and logs of a service.
import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import type { Entry, OpenOptions, Outcome } from '../../src/store/engine.ts'
import { engineOf } from '../../src/store/engines.ts'
import { type FailedOutcome, StoreUnavailable } from '../../src/store/errors.ts'
import type { SqlStore } from '../../src/store/sql/sql.ts'
import { createDirectory, sqlite } from './engines.ts'
import { until } from './until.ts'

/** A parsed line of the log of a service. */
export type LogLine = { level: number; msg: string; [name: string]: unknown }
export type SqliteFile = { store: Store; path: string; directory: string; lines: LogLine[] }

/** Opens a store on a new file, or on the one at `path`; it closes when the test ends. */
export async function openFile(t: Test, given?: string): Promise<SqliteFile> {
  const directory = createDirectory(t)
  const path = given ?? join(directory, 'plants.db')
  const lines: LogLine[] = []
  const logger = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
  return { store: await open(t, `file:${path}`, { logger }), path, directory, lines }
}

export function entry(name: string, id?: number): Entry {
  return { item: JSON.stringify({ name, tag: '' }), id }
}

/** Adds a plant for each name. */
export function add({ log }: Store, ...names: string[]): Promise<Outcome[]> {
  return log.append(names.map((name) => entry(name)))
}

/** Adds enough plants for a list that is larger than all buffers. Resolves to its length in bytes. */
export async function fillLarge({ log }: Store, count = 40_000): Promise<number> {
  const one = { item: JSON.stringify({ name: 'x'.repeat(255), tag: 'x'.repeat(255) }), id: undefined }
  for (let n = 0; n < count; n += 1000) await log.append(Array(1000).fill(one))
  return count * (one.item.length + 1) + 1
}

/** The names of all plants. */
export async function listNames({ log }: Store): Promise<string[]> {
  const { position, mark } = await log.head()
  const array = await log.read(0, position, mark)
  return (JSON.parse(String(array)) as { name: string }[]).map(({ name }) => name)
}

/** The properties of a StoreUnavailable with this outcome, to match an error. */
export function unavailable(outcome: FailedOutcome) {
  return { name: 'StoreUnavailable', outcome }
}

export type Store = SqlStore

export const silent = pino({ level: 'silent' })

/**
 * Opens the store at a URL of SQLite or PostgreSQL. By default it is writable, is created if it is missing, and logs
 * nothing.
 */
export async function openStore(
  url: string,
  { mode = 'write', create = mode !== 'read', logger = silent, ...options }: Partial<OpenOptions> = {},
): Promise<Store> {
  return (await engineOf(url).open(url, { mode, create, logger, ...options })) as Store
}

/** Opens the store at a URL; it closes when the test ends. With short time-outs, a busy machine may need more attempts. */
export async function open(t: Test, url: string, options: Partial<OpenOptions> = {}): Promise<Store> {
  const retry = (error: Error) => {
    if (/no server was ready within/.test(error.message)) return openStore(url, options)
    throw error
  }
  const store = await openStore(url, options).catch(retry).catch(retry).catch(retry)
  t.teardown(() => store.close())
  return store
}

/** Counts the reads of the log of a store. Each read takes some turns of the event loop, so that others can join it. */
export function countReads({ log, ...store }: Store): { store: Store; reads: { count: number } } {
  const reads = { count: 0 }
  const read: typeof log.read = async (...range) => {
    reads.count++
    for (let turns = 0; turns < 100; turns++) await new Promise(setImmediate)
    return log.read(...range)
  }
  return { store: { ...store, log: { ...log, read } }, reads }
}

/** `unknown`: plants are added, but the outcome is lost. `broken`: an unexpected error. */
export type StoreFault = FailedOutcome | 'broken'

/** Opens a store on a new SQLite file; for each of `faults`, in order, one addition or list fails. */
export async function openFailing(t: Test): Promise<{ store: Store; faults: StoreFault[] }> {
  const store = await openStore(await sqlite.createDatabase(t))
  const faults: StoreFault[] = []
  const { log } = store
  const failing: Store['log'] = {
    async append(entries, options) {
      const fault = faults.shift()
      if (fault === undefined) return log.append(entries, options)
      if (fault === 'unknown') await log.append(entries, options)
      throw makeError(fault)
    },
    head(positions) {
      const fault = faults.shift()
      if (fault !== undefined) throw makeError(fault)
      return log.head(positions)
    },
    read: (after, last, mark) => log.read(after, last, mark),
  }
  return { store: { ...store, log: failing }, faults }
}

function makeError(fault: StoreFault): Error {
  const message = 'made by the test'
  return fault === 'broken' ? new Error(message) : new StoreUnavailable(fault, message)
}

export function collectLines() {
  const lines: LogLine[] = []
  const write = (text: string) => void lines.push(JSON.parse(text))
  return {
    logger: pino({ level: 'debug' }, { write }),
    lines,
    /** Resolves to the first line for which `is` returns true, once it is logged. */
    async find(is: (line: LogLine) => boolean): Promise<LogLine> {
      await until(() => lines.some(is), { found: () => lines })
      return lines.find(is) as LogLine
    },
  }
}
