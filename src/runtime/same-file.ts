// Identifies files by device and inode, whatever their paths.
import { existsSync, realpathSync, statSync } from 'node:fs'

/** Device and inode of a file. */
export type FileId = { dev: number; ino: number }

/** Identifies a file; undefined if it does not exist. */
export function identify(path: string): FileId | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats && { dev: stats.dev, ino: stats.ino }
}

export function isSameFile(one: FileId | undefined, other: FileId | undefined): boolean {
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev
}

/** Resolves links in the path of a database: SQLite keeps `-wal` and `-shm` beside the real file. */
export function resolveLinks(path: string): string {
  /* c8 ignore next: it is gone in the same moment */
  return existsSync(path) ? realpathSync(path) : path
}
