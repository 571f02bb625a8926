// The engines: each is a folder, and a row here. An engine is loaded on demand, as its driver takes longer than the
// rest.
import { findUrlFault } from './postgres/hosts.ts'
import { postgresDialect } from './postgres/postgres-dialect.ts'
import { findPathFault, sqlitePath } from './sqlite/files/path.ts'
import { sqliteDialect } from './sqlite/sqlite-dialect.ts'
import { type Store, type StoreOptions, StoreRefused } from './store.ts'
import type { Dialect, StoreView } from './view.ts'

export type Engine = {
  readonly name: string
  /** The beginning of its URLs, for messages; `scheme` matches them. */
  readonly prefix: string
  readonly scheme: RegExp
  readonly dialect: Dialect
  /** The fault of a URL of its scheme, as the end of a sentence, without values, which may be passwords. */
  findFault(url: string): string | undefined
  /** Opens a store, and migrates its schema. Rejects with StoreRefused for a foreign or a newer database. */
  open(url: string, options: StoreOptions): Promise<Store>
  /** Opens a store for reading. Rejects with StoreRefused when there is none, or one of a newer version. */
  view(url: string): Promise<StoreView>
  /** The path of the database, if it is a file. Throws StoreRefused when the URL names none. */
  path?(url: string): string
}

export const engines: Engine[] = [
  {
    name: 'SQLite',
    prefix: 'file:',
    scheme: /^file:./,
    dialect: sqliteDialect,
    findFault: findPathFault,
    open: async (url, options) => (await import('./sqlite/sqlite-engine.ts')).openSqlite(url, options),
    view: async (url) => (await import('./sqlite/sqlite-view.ts')).openSqliteView(url),
    path: sqlitePath,
  },
  {
    name: 'PostgreSQL',
    prefix: 'postgres://',
    scheme: /^postgres(ql)?:\/\/./,
    dialect: postgresDialect,
    findFault: findUrlFault,
    open: async (url, options) => (await import('./postgres/postgres-engine.ts')).openPostgres(url, options),
    view: async (url) => (await import('./postgres/postgres-view.ts')).openPostgresView(url),
  },
]

/** Finds the engine of a URL. Throws StoreRefused when there is none. */
export function engineOf(url: string): Engine {
  const engine = engines.find(({ scheme }) => scheme.test(url))
  if (engine) return engine
  throw new StoreRefused('the URL of the database has an unknown scheme')
}
