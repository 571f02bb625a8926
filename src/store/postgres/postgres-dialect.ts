// SQL as PostgreSQL has it.
import type { Dialect } from '../sql/sql.ts'

export const postgresDialect: Dialect = {
  join: (text, separator) => `string_agg(${text}, ${separator} ORDER BY position)`,
  blob: (text) => text,
  schemaFaults: `
    SELECT column1 || ' is missing from the schema' AS detail
    FROM (VALUES ('plants_pkey'), ('plants_id'), ('plants_no_change'), ('plants_no_truncate')) AS guards
    WHERE column1 NOT IN (
      SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'plants'::regclass AND tgenabled <> 'D'
      UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'plants'::regclass AND indisvalid)
    UNION ALL SELECT 'the table head has ' || count(*) || ' rows, not the one that a batch locks'
      FROM head HAVING count(*) <> 1`,
  putPlants: `
    INSERT INTO plants SELECT * FROM
      json_to_recordset($1) AS added (position bigint, id bigint, item text, mark text, checksum bigint)
    WHERE (SELECT coalesce(max(position), 0) FROM plants) = $2`,
}
