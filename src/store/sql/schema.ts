// The tables of a store, in migration steps. Missing steps run when a store is opened to write; on PostgreSQL within the
// time limit of an attempt to connect. Queries must also work on older tables, which a process that only reads may find.
// A running process of an older version refuses the store when it opens another connection.
import { StoreRefused } from '../errors.ts'

/**
 * The identification of a store. SQLite: `application_id` ('Plnt'), with the schema version in `user_version`.
 * PostgreSQL: a row of `meta` with the schema version. Stores from before 1.0.0 have other values.
 */
export const applicationId = 0x506c6e74
export const schemaKey = 'step'
export const earlierApplicationIds: unknown[] = [0x706c6e74, 0x504c4e54]
export const earlierKeys = ['version', 'schema']

/** The tables of both engines. `integer`: the 64-bit type; `strict`: the keyword that makes SQLite check types. */
const makeTables = (integer: string, strict: string) => `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) ${strict};
  CREATE TABLE plants (
    position ${integer} PRIMARY KEY,
    id ${integer},
    item TEXT NOT NULL,
    mark TEXT NOT NULL,
    checksum ${integer} NOT NULL
  ) ${strict};
  CREATE UNIQUE INDEX plants_id ON plants (id) WHERE id IS NOT NULL;
  CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at ${integer} NOT NULL,
    expires_at ${integer},
    last_used_at ${integer},
    revoked_at ${integer}
  ) ${strict};`

const sqliteTables = `
  ${makeTables('INTEGER', 'STRICT')}
  CREATE TRIGGER plants_no_update BEFORE UPDATE ON plants
    BEGIN SELECT raise(ABORT, 'the log of plants is append-only'); END;
  CREATE TRIGGER plants_no_delete BEFORE DELETE ON plants
    BEGIN SELECT raise(ABORT, 'the log of plants is append-only'); END;
  PRAGMA application_id = ${applicationId};`

/** Each transaction that adds plants or changes tokens locks the row of `head`; saving the last use does not. */
const postgresTables = `
  ${makeTables('BIGINT', '')}
  CREATE TABLE head (lock BIGINT NOT NULL);
  INSERT INTO head VALUES (0);
  CREATE FUNCTION plants_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the log of plants is append-only'; END $$;
  CREATE TRIGGER plants_no_change BEFORE UPDATE OR DELETE ON plants
    FOR EACH ROW EXECUTE FUNCTION plants_append_only();
  CREATE TRIGGER plants_no_truncate BEFORE TRUNCATE ON plants
    FOR EACH STATEMENT EXECUTE FUNCTION plants_append_only();`

export const steps = [{ sqlite: sqliteTables, postgres: postgresTables }]
/** The schema version, which is recorded in each store. */
export const version = steps.length

/** Builds the error for a store from before 1.0.0. */
export function refusalOfEarlier(name: string): StoreRefused {
  return new StoreRefused(
    `${name} was created by a version before 1.0.0: export it with that version, then import it with this one`,
  )
}

/** Throws StoreRefused for a store of a newer schema. */
export function checkVersion(name: string, found: number): void {
  if (found > version)
    throw new StoreRefused(`${name} has schema version ${found}, newer than ${version}: upgrade plant-store`)
}
