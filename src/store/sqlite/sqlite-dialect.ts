// SQL as SQLite has it.
import type { Dialect, Value } from '../sql/sql.ts'

const members = ['position', 'id', 'item', 'mark', 'checksum'].map((name) => `value ->> '${name}'`)

export const sqliteDialect: Dialect = {
  // A range of the primary key is read, and so joined, in its order; an explicit order would be sorted.
  join: (text, separator) => `group_concat(${text}, ${separator})`,
  // Blobs are not decoded.
  blob: (text) => `CAST(${text} AS BLOB)`,
  schemaFaults: `
    SELECT column1 || ' is missing from the schema' AS fault
    FROM (VALUES ('plants_id'), ('plants_no_update'), ('plants_no_delete'))
    WHERE column1 NOT IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'plants')`,
  integrity: 'PRAGMA integrity_check(10)',
  putPlants: `
    INSERT INTO plants SELECT ${members} FROM json_each($1)
    WHERE (SELECT coalesce(max(position), 0) FROM plants) = $2`,
}

/** Names parameters: in SQLite `$1` is a name, not a number. */
export function named(values: Value[]): Record<string, Value> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}
