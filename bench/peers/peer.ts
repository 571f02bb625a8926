// How a peer is started: its settings come from the environment, and it says when it is ready.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync, type StatementSync } from 'node:sqlite'

export const host = '127.0.0.1'
export const port = Number(process.env.PORT ?? 0)

/** A setting that a peer cannot do without. Throws when it is absent. */
export function setting(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set`)
  return value
}

/** Says where a listening server can be reached. */
export function announce(server: { address(): ReturnType<Server['address']> }): void {
  console.log(`listening on http://${host}:${(server.address() as AddressInfo).port}`)
}

/** The store of Express and Hono: one synchronous statement per request, each INSERT on stable storage. */
export function openDatabase(path: string): { insert: StatementSync; select: StatementSync } {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT NOT NULL)')
  return {
    insert: db.prepare('INSERT INTO plants (name, tag) VALUES (?, ?)'),
    select: db.prepare('SELECT name, tag FROM plants ORDER BY id LIMIT ?'),
  }
}
