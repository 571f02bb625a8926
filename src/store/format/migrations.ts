// The migrations of the database schema, per engine. They are only ever appended.
import { StoreRefused } from '../errors.ts'

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
    // The table `meta` exists before the first step: a migration holds a lock on one of its rows.
    postgres: `
      CREATE TABLE head (position BIGINT NOT NULL);
      INSERT INTO head VALUES (0);
      CREATE TABLE writers (id TEXT PRIMARY KEY, batch BIGINT NOT NULL, seen_at BIGINT NOT NULL);
      CREATE TABLE plants (position BIGINT PRIMARY KEY, id BIGINT, item TEXT NOT NULL);
      CREATE UNIQUE INDEX plants_id ON plants (id) WHERE id IS NOT NULL;
      CREATE FUNCTION plants_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the log of plants is append-only'; END $$;
      CREATE TRIGGER plants_no_change BEFORE UPDATE OR DELETE ON plants
        FOR EACH ROW EXECUTE FUNCTION plants_append_only();
      CREATE TRIGGER plants_no_truncate BEFORE TRUNCATE ON plants
        FOR EACH STATEMENT EXECUTE FUNCTION plants_append_only();
      ${tokens}`,
  },
  // From 1.0.0 to 2.0.0. Plants that are there get a first epoch now (`origin`: see postgres/epoch-notes.ts), and their
  // checksums and segments by `verify --repair`: here these would delay the start by minutes.
  {
    sqlite: `
      CREATE TABLE epochs (number INTEGER PRIMARY KEY, epoch TEXT NOT NULL, start INTEGER NOT NULL) STRICT;
      INSERT INTO epochs VALUES (1, lower(hex(randomblob(6))), 0);
      ALTER TABLE plants ADD COLUMN checksum INTEGER;
      DROP TRIGGER plants_no_update;
      CREATE TRIGGER plants_no_update BEFORE UPDATE OF position, id, item ON plants
        BEGIN SELECT raise(ABORT, 'the log of plants is append-only'); END;
      CREATE TABLE segments (last INTEGER PRIMARY KEY, items TEXT NOT NULL) STRICT;`,
    // Segments of other plants may remain from before a dump of an older version was restored. They are stored
    // uncompressed: expanding pglz takes as long as reading the plants. The head row becomes a mere lock, and each batch
    // inserts a note. A process of 1.0.0 fails on the missing `position` and the conflict on `id`, so that it can neither
    // add plants nor serve a log that has stopped.
    postgres: `
      CREATE TABLE epochs (
        number BIGINT PRIMARY KEY,
        epoch TEXT NOT NULL,
        start BIGINT NOT NULL,
        origin TEXT NOT NULL
      );
      INSERT INTO epochs VALUES (1, substr(md5(random()::text), 1, 12), 0, '');
      ALTER TABLE plants ADD COLUMN checksum BIGINT;
      DROP TRIGGER plants_no_change ON plants;
      CREATE TRIGGER plants_no_change BEFORE UPDATE OF position, id, item OR DELETE ON plants
        FOR EACH ROW EXECUTE FUNCTION plants_append_only();
      DROP TABLE IF EXISTS segments;
      CREATE TABLE segments (last BIGINT PRIMARY KEY, items TEXT NOT NULL);
      ALTER TABLE segments ALTER COLUMN items SET STORAGE EXTERNAL;
      ALTER TABLE head RENAME COLUMN position TO lock;
      ALTER TABLE writers DROP CONSTRAINT writers_pkey, ADD PRIMARY KEY (id, batch);`,
  },
]

/** The schema version that introduced epochs, checksums of rows, and segments. */
export const epochsVersion = 2

/** Throws StoreRefused when the schema is of an older version and is not to be migrated. */
export function checkUpgrade(version: number, keepsSchema = false): void {
  if (keepsSchema && version < migrations.length)
    throw new StoreRefused(
      `the database has schema version ${version}, this plant-store works on ${migrations.length}: start its service ` +
        'on the database first, which brings it up to date, or use the plant-store that runs on it',
    )
}

/**
 * Throws StoreRefused for a store that cannot be migrated because an older service has it open. `by`: its processes.
 */
export function refuseInUse(by: string): never {
  throw new StoreRefused(
    `the database is of an older version, and ${by}: stop each plant-store of that version, then start again`,
  )
}

/** Throws StoreRefused when a newer schema is not compatible with this version of the service. */
export function checkVersion(version: number, compatible = version): void {
  if (compatible > migrations.length)
    throw new StoreRefused(
      `the database has schema version ${version}, this plant-store knows ${migrations.length}: use a newer plant-store`,
    )
}
