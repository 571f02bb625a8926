// Expressions of SQL that differ between engines, for SQLite.
import type { Value } from '../store.ts'
import type { Dialect } from '../view.ts'

/** Rows are read in the order of the primary key; an explicit order would be sorted. */
export const sqliteDialect: Dialect = {
  joinedItems: `group_concat(item, ',')`,
  locks: '1',
  guards: {
    names: ['plants_id', 'plants_no_update', 'plants_no_delete'],
    text: "SELECT name FROM sqlite_schema WHERE tbl_name = 'plants'",
  },
  isStandby: '0',
  integrity: 'PRAGMA integrity_check(10)',
}

/** Names parameters: in SQLite `$1` is a name, not a number. */
export function named(values: Value[]): Record<string, Value> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}
