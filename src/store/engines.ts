// The databases that a store can be in: an engine is a folder, and a row here. An engine that is not used is not loaded:
// its driver takes longer than the rest.
import { findUrlFault } from './postgres/hosts.ts'
import { postgresDialect } from './postgres/postgres-dialect.ts'
import { findPathFault, sqlitePath } from './sqlite/files/path.ts'
import { sqliteDialect } from './sqlite/sqlite-dialect.ts'
import { type Store, type StoreOptions, StoreRefused } from './store.ts'
import type { Dialect, StoreView } from './view.ts'

export type Engine = {
  readonly name: string
  /** The beginning of its URLs, for people; `scheme` matches them. */
  readonly prefix: string
  readonly scheme: RegExp
  readonly dialect: Dialect
  /** Why a URL of its scheme cannot be used, as the end of a sentence. It can hold a password: values are not repeated. */
  findFault(url: string): string | undefined
  /**
   * Opens a store, and brings its schema up to date. Rejects with StoreRefused when what is there is no plant store, or
   * a newer one.
   */
  open(url: string, options: StoreOptions): Promise<Store>
  /** Opens a store to be read. Rejects with StoreRefused when there is none, or one that a newer version made. */
  view(url: string): Promise<StoreView>
  /** The file that the database is, where it is one. Throws StoreRefused when the URL names none. */
  path?(url: string): string
}

export const engines: Engine[] = [
  {
    name: 'SQLite',
    prefix: 'file:',
    scheme: /^file:./,
    dialect: sqliteDialect,
    findFault: findPathFault,
    async open(url, options) {
      const { openSqlite, openSharedSqlite } = await import('./sqlite/sqlite-engine.ts')
      return options.port ? openSharedSqlite(url, options.port, options) : openSqlite(url, options)
    },
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

/** The engine that a URL is for. Throws StoreRefused when there is none. */
export function engineOf(url: string): Engine {
  const engine = engines.find(({ scheme }) => scheme.test(url))
  if (engine) return engine
  throw new StoreRefused('the URL of the database is of no kind that is known')
}
