// All tokens of a store, which the service never lists.
import type { Token } from '../../src/store/engine.ts'
import type { Sql } from '../../src/store/sql/sql.ts'
import { readTokens } from '../../src/store/sql/sql-tokens.ts'

export function listTokens(sql: Sql): Promise<Token[]> {
  return readTokens(sql.select)
}
