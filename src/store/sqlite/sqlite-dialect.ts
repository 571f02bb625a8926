// SQL as SQLite has it.
import type { Dialect, Value } from '../sql/sql.ts'

export const sqliteDialect: Dialect = {
  schemaFaults: `
    SELECT column1 || ' is missing from the schema' AS detail
    FROM (VALUES ('plants_id'), ('plants_no_update'), ('plants_no_delete'))
    WHERE column1 NOT IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'plants')`,
  integrity: 'PRAGMA integrity_check(10)',
  elements: 'json_each',
}

/** Names parameters: in SQLite `$1` is a name, not a number. */
export function named(values: Value[]): Record<string, Value> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}
