// Stores that version 1.0.0 made, kept as they were: their rows have no checksum.
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Test } from 'tap'
import { createDirectory, findEngine } from '../support/engines.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

export const keptFile = fixture('plants-1.0.0.db')

export type Kept = {
  url: string
  items: string[]
  /** The version of the schema that it has now. */
  version(): Promise<number>
}

/** A store of an engine, fresh from 1.0.0. */
export function makeKept(t: Test, engine: string): Promise<Kept> {
  return engine === 'SQLite' ? makeFile(t) : makeDatabase(t)
}

async function makeFile(t: Test): Promise<Kept> {
  const path = join(createDirectory(t), 'kept.db')
  copyFileSync(keptFile, path)
  return {
    url: `file:${path}`,
    items: [
      '{"name":"Monstera","tag":"indoor"}',
      '{"name":"Ficus","tag":""}',
      '{"name":"ヤシ 🌴","tag":"a\\"b"}',
    ],
    version: async () => readVersionOf(path),
  }
}

/** The version of the schema of a SQLite file. */
export function readVersionOf(path: string): number {
  const db = new DatabaseSync(path, { readOnly: true })
  const row = db.prepare('PRAGMA user_version').get()
  db.close()
  return Number(row?.user_version)
}

async function makeDatabase(t: Test): Promise<Kept> {
  const { engine: postgres } = findEngine('PostgreSQL')
  const url = await postgres.createDatabase(t)
  const client = new pg.Client({ connectionString: url, application_name: 'test' })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(readFileSync(fixture('postgres-1.0.0.sql'), 'utf8'))
  return {
    url,
    items: [
      '{"name":"Monstera","tag":"indoor"}',
      '{"name":"Ficus \'Tineke\' \\\\","tag":""}',
      '{"name":"ヤシ 🌴","tag":"outdoor"}',
      '{"name":"Aloe \\"vera\\"","tag":"x\u2028y"}',
    ],
    async version() {
      const { rows } = await client.query("SELECT value FROM meta WHERE key = 'version'")
      return Number(rows[0].value)
    },
  }
}
