// Changes a database file by other programs, because SQLite would lose its locks if this process closed a descriptor of
// it.
import { execFileSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'

export function remove(path: string): void {
  execFileSync('rm', [path])
}

export function truncate(path: string, bytes: number): void {
  execFileSync('truncate', ['-s', String(bytes), path])
}

/** Copies a database in use into one complete file. */
export function backUp(path: string, to: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  database.exec(`VACUUM INTO '${to}'`)
  database.close()
}
