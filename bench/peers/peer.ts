// Shared by the peers: settings from the environment, the announcement of the URL, and a store.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { makePlant } from '../generate.ts'

export const host = '127.0.0.1'
export const port = Number(process.env.PORT ?? 0)

/** The initial plants of a store. */
export const plants = Array.from({ length: 1000 }, (_, n) => makePlant(n))

/** Reads a required setting. Throws if it is missing. */
export function setting(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set`)
  return value
}

/** Prints the URL of a listening server. */
export function announce(server: { address(): ReturnType<Server['address']> }): void {
  console.log(`listening on http://${host}:${(server.address() as AddressInfo).port}`)
}

/** The store of Fastify and Express: one synchronous statement per request, each INSERT on stable storage. */
export function openDatabase(path: string): { insert: StatementSync; select: StatementSync } {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO plants (name, tag) VALUES (?, ?)')
  for (const { name, tag } of plants) insert.run(name, tag)
  return { insert, select: db.prepare('SELECT name, tag FROM plants ORDER BY id LIMIT ?') }
}
