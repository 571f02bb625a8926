// Changes to a database file by other programs: if this process closed a descriptor of it, SQLite would lose its locks.
import { execFileSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'

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
