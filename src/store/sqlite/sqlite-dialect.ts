// The SQL of SQLite where it differs between engines.
import type { Dialect } from '../view.ts'

/** Rows of the primary key are read in its order; an order that is asked for is sorted. */
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
