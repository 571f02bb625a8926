// The list of engines. Each engine is a folder, which is loaded on first use, because its driver loads slowly.
import { resolve } from 'node:path'
import pino from 'pino'
import { maskUrl } from '../mask.ts'
import type { Engine, OpenOptions, Store } from './engine.ts'
import { findUrlFault } from './postgres/hosts.ts'
import { findPathFault, sqlitePath } from './sqlite/path.ts'

/** The engines, by the scheme of their URLs. */
export const engines: Engine[] = [
  {
    name: 'SQLite',
    prefix: 'file:',
    scheme: /^file:./,
    findFault: findPathFault,
    path: sqlitePath,
    open: async (url, options) => (await import('./sqlite/sqlite-engine.ts')).openSqlite(url, options),
  },
  {
    name: 'PostgreSQL',
    prefix: 'postgres://',
    scheme: /^postgres(ql)?:\/\/./,
    findFault: findUrlFault,
    open: async (url, options) => (await import('./postgres/postgres-engine.ts')).openPostgres(url, options),
  },
]

/** Finds the engine of a URL. The settings refuse a URL without an engine. */
export const engineOf = (url: string) => engines.find(({ scheme }) => scheme.test(url)) as Engine

/** Names a database in messages: the path of the file, or the URL without its password. */
export function nameDatabase(url: string): string {
  const path = engineOf(url).path?.(url)
  return path === undefined ? maskUrl(url) : resolve(path)
}

/** The logger of a store that a command opens: the command reports all failures itself. */
export const silent = pino({ level: 'silent' })

type CommandOptions = Omit<OpenOptions, 'logger'>

/** Opens the store at a URL for a command, for the duration of `work`. */
export async function withStore<T>(url: string, options: CommandOptions, work: (store: Store) => Promise<T>) {
  const store = await engineOf(url).open(url, { ...options, logger: silent })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
