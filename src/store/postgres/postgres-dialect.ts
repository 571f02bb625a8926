// Expressions of SQL that differ between engines, for PostgreSQL.
import type { Dialect } from '../view.ts'

export const postgresDialect: Dialect = {
  joinedItems: `string_agg(item, ',' ORDER BY position)`,
  locks: '(SELECT count(*) FROM head)',
  guards: {
    names: ['plants_pkey', 'plants_id', 'plants_no_change', 'plants_no_truncate'],
    text: `
      SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'plants'::regclass AND tgenabled <> 'D'
      UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'plants'::regclass AND indisvalid`,
  },
  isStandby: 'pg_is_in_recovery()::int',
}
