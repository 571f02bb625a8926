// What befalls a database file from outside. Other programs do it: a descriptor that this process closes would drop the
// locks that SQLite holds in it.
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export function move(from: string, to: string): void {
  renameSync(from, to)
}

export function remove(path: string): void {
  execFileSync('rm', [path])
}

export function truncate(path: string, bytes: number): void {
  execFileSync('truncate', ['-s', String(bytes), path])
}

/** A copy of a database in use, complete in one file. */
export function backUp(path: string, to: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  database.exec(`VACUUM INTO '${to}'`)
  database.close()
}
