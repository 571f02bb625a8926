// Damages a store: changes rows without the triggers, and bytes in its file.
import { readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

const pageBytes = 4096

/** Runs statements that the triggers of the log refuse, without these triggers. */
export async function tamper(url: string, statements: string): Promise<void> {
  if (url.startsWith('file:')) {
    const db = new DatabaseSync(new URL(url), { defensive: false })
    const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all()
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`)
    db.exec(statements)
    for (const { sql } of triggers) db.exec(String(sql))
    db.close()
    return
  }
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`SET session_replication_role = replica; ${statements}`)
  await client.end()
}

/** Flips one bit in the first byte of a text, which the file must contain once. */
export function flipBit(path: string, text: string): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf(text)
  if (at < 0 || bytes.indexOf(text, at + 1) >= 0) throw new Error(`the file does not hold ${text} once`)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  writeFileSync(path, bytes)
}

/** Overwrites the 4 KiB page, counted from 1, of a file. */
export function overwritePage(path: string, page: number): void {
  writeFileSync(path, readFileSync(path).fill(0, (page - 1) * pageBytes, page * pageBytes))
}

/** Finds the first page of a file that contains a text. */
export function findPage(path: string, text: string): number {
  return Math.floor(readFileSync(path).indexOf(text) / pageBytes) + 1
}
