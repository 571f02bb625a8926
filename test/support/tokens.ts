// All tokens of a store, which the service never lists.
import type { Sql, StoredToken } from '../../src/store/store.ts'
import { toToken } from '../../src/store/token-notes.ts'

export async function listTokens(sql: Sql): Promise<StoredToken[]> {
  return (await sql.select('SELECT * FROM tokens ORDER BY created_at, id')).map(toToken)
}
