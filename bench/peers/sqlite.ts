// The store of the Express and the Hono peer: one synchronous statement a request, each INSERT on stable storage.
import { DatabaseSync, type StatementSync } from 'node:sqlite'

/** Opens the file, which the bench has filled with plants. */
export function openDatabase(path: string): { insert: StatementSync; select: StatementSync } {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  return {
    insert: db.prepare('INSERT INTO plants (name, tag) VALUES (?, ?)'),
    select: db.prepare('SELECT name, tag FROM plants ORDER BY id LIMIT ?'),
  }
}
