// The numbered steps of the database schema, for each engine. Steps are only ever added, at the end.
import { StoreRefused } from './store.ts'

type Migration = { sqlite: string; postgres: string }

const tokens = `
  CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
  );`

export const migrations: Migration[] = [
  {
    sqlite: `
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
      CREATE TABLE plants (position INTEGER PRIMARY KEY, id INTEGER, item TEXT NOT NULL) STRICT;
      CREATE UNIQUE INDEX plants_id ON plants (id) WHERE id IS NOT NULL;
      CREATE TRIGGER plants_no_update BEFORE UPDATE ON plants
        BEGIN SELECT raise(ABORT, 'the log of plants is append-only'); END;
      CREATE TRIGGER plants_no_delete BEFORE DELETE ON plants
        BEGIN SELECT raise(ABORT, 'the log of plants is append-only'); END;
      ${tokens}`,
    postgres: '',
  },
]

/** Throws StoreRefused when a database was made by a newer version of the service. */
export function checkVersion(version: number): void {
  if (version > migrations.length)
    throw new StoreRefused(
      `the database has schema version ${version}, this plant-store knows ${migrations.length}: use a newer plant-store`,
    )
}
