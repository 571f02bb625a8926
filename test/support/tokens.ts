// All tokens of a store, which the service never lists.
import type { Sql } from '../../src/store/store.ts'
import { type Token, toToken } from '../../src/tokens/tokens.ts'

export async function listTokens(sql: Sql): Promise<Token[]> {
  return (await sql.select('SELECT * FROM tokens ORDER BY created_at, id')).map(toToken)
}
