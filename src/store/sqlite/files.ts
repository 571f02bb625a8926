// Checks that the path still names the open files. SQLite keeps writing to a file that was deleted or replaced, and all
// later commits would be lost when the process ends.
import { fstatSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { type FileId, isSameFile, resolveLinks } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'
import { pragma } from './read-only.ts'

/** Size of the header of the `-wal` (sqlite.org/fileformat2.html#walformat). */
const walHeaderBytes = 32
/** Size of the header of each page in the `-wal`. */
const frameHeaderBytes = 24

export type OpenFiles = ReturnType<typeof recordFiles>

/**
 * Records the open files of a database: those with the `known` ids, or the current files at the path, with `-wal` and
 * `-shm` next to it. Throws errors of the file system.
 */
export function recordFiles(path: string, known?: FileId[]) {
  // Links are resolved for each check, because the next process will look for the log next to the target.
  const namesBeside = (target: string) => [path, `${target}-wal`, `${target}-shm`]
  const ids: FileId[] = known ?? namesBeside(resolveLinks(path)).map((name) => statSync(name))
  /** The last known size of the database. */
  let bytes = 0

  function findFaultIn(name: string, index: number): string | undefined {
    const stats = statSync(name, { throwIfNoEntry: false })
    if (stats === undefined) return `${name} was moved or deleted`
    if (!isSameFile(stats, ids[index])) return `${name} was replaced by another file`
    if (index > 0) return undefined
    // An append-only log never shrinks.
    if (stats.size < bytes) return `${name} shrank from ${bytes} to ${stats.size} bytes`
    bytes = stats.size
    return undefined
  }

  /**
   * Returns why nothing may be added; undefined if additions are allowed. Never throws: a file that cannot be checked
   * counts as lost.
   */
  function findFault(): string | undefined {
    const todo = 'put the original file back, or restart to use the file that is now at this path'
    try {
      const [fault] = namesBeside(resolveLinks(path)).flatMap((name, index) => findFaultIn(name, index) ?? [])
      return fault && `${fault}: ${todo}`
    } catch (error) {
      const { path: name = path, code } = error as NodeJS.ErrnoException
      return `${name} cannot be accessed (${code}): ${todo}`
    }
  }

  /** Throws StoreRefused for a fault, after calling `onFault`. */
  function check(onFault?: () => void): void {
    const fault = findFault()
    if (fault === undefined) return
    onFault?.()
    throw new StoreRefused(fault)
  }

  return { path, ids, findFault, check }
}

/** The cause of the error for a truncated `-wal`. */
export const cutWal =
  'the write-ahead log was truncated, and the latest plants may be lost: restart, or restore a backup'

/**
 * Returns a function that throws if another program has truncated the `-wal`. SQLite would write after the former end,
 * and ignore the whole log when the database is opened again. The function returns the number of pages in the log.
 * `wal`: descriptor of the `-wal`.
 */
export function makeWalCheck(db: DatabaseSync, files: OpenFiles, wal: number): () => number {
  const frameBytes = frameHeaderBytes + Number(pragma(db, 'page_size'))
  // NOOP only counts the pages in the log; -1 if another process is checkpointing.
  const count = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  let pages = 0
  const isCut = () => {
    pages = Number(count.get()?.log)
    return pages > 0 && fstatSync(wal).size < walHeaderBytes + pages * frameBytes
  }
  return () => {
    // Checked again, because other processes may have emptied the log after its pages were counted, even twice.
    if (isCut() && isCut() && isCut()) {
      // If the files were moved, other programs may change them under different locks.
      files.check()
      throw new Error(`another program has truncated ${files.path}-wal`, { cause: cutWal })
    }
    return pages
  }
}
