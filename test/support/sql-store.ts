// Stores of the engines that speak SQL, by which tests look and change behind the back of the service.
import type { OpenOptions } from '../../src/store/engine.ts'
import * as engines from '../../src/store/engines.ts'
import type { SqlStore } from '../../src/store/sql/sql.ts'

export type Store = SqlStore

/** Opens the store at a URL of SQLite or PostgreSQL: to write, and made if it is missing, unless told otherwise. */
export async function openStore(
  url: string,
  {
    mode = 'write',
    create = mode !== 'read',
    ...options
  }: Partial<OpenOptions> & Pick<OpenOptions, 'logger'>,
): Promise<Store> {
  return (await engines.openStore(url, { mode, create, ...options })) as Store
}
