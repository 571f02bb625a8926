// The write-ahead log of a database that was moved, deleted or replaced. The next process would miss a log that is no
// longer beside its database, or apply it to a different database. Therefore this process writes the log back before it
// exits, unless another program may be using either file, or a copy of the database may need the log.
import { fchmodSync, fstatSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { attempt } from '../../attempt.ts'
import { type FileId, isSameFile, resolveLinks } from '../../file-system.ts'
import type { OpenFiles } from './files.ts'

const stat = (name: string) => attempt(() => statSync(name))

/**
 * True if a file may be a copy of a database that was moved to another disk: it has the same size and modification
 * time, which some file systems round to one or two seconds.
 */
function isCopy(file: Stats, { size, mtimeMs }: Stats): boolean {
  const roundedMs = mtimeMs - file.mtimeMs
  const isRounded = file.mtimeMs % 1000 === 0 && roundedMs > 0 && roundedMs < 2000
  return file.size === size && (roundedMs === 0 || isRounded)
}

/** `database`, `wal`: descriptors of the open files. */
export function watchWal({ path, ids, findFault }: OpenFiles, database: number, wal: number) {
  /** Stats of the database when the files were lost, and after our last change since then. */
  let [lost, changed]: [Stats?, Stats?] = []

  /** Records a loss. Call it regularly: later changes of the database change its times again. */
  function recordLoss(): void {
    lost = findFault() === undefined ? undefined : (lost ?? attempt(() => fstatSync(database)))
    changed = lost && (changed ?? lost)
  }

  /** Finds the current path of an open file. Undefined if it was deleted, or moved (except on Linux). */
  function findPlace(descriptor: number, id: FileId | undefined, ending: string): string | undefined {
    const named = (attempt(() => resolveLinks(path)) ?? path) + ending
    const moved = attempt(() => readlinkSync(`/proc/self/fd/${descriptor}`)) ?? named
    return [named, moved].find((name) => isSameFile(stat(name), id))
  }
  // A database truncated to 0 bytes counts as deleted: the log may contain all of it.
  const findDatabase = () => (fstatSync(database).size > 0 ? findPlace(database, ids[0], '') : undefined)
  const findWal = () => findPlace(wal, ids[1], '-wal')

  const isChanged = ({ mtimeMs }: Stats) => mtimeMs > Number(changed?.ctimeMs)

  /** True if another program has a database open with a different `-shm`, and therefore with other locks. */
  function hasOtherLocks(databasePath: string): boolean {
    const index = stat(`${databasePath}-shm`)
    if (index === undefined || isSameFile(index, ids[2])) return false
    // Each connection locks the `-shm`, as long as it is open.
    const locks = attempt(() => readFileSync('/proc/locks', 'utf8'))
    return locks === undefined || locks.includes(`:${index.ino} `)
  }

  return {
    recordLoss,
    /** Call it after each change by this process: any later change is by another program. */
    recordOwnChange(): void {
      recordLoss()
      // Changes only the time of the database, so that for all processes the log is older than the database.
      attempt(() => fchmodSync(database, fstatSync(database).mode))
      changed = fstatSync(database)
    },
    /** True if the log is not empty, and no longer beside its database. */
    isLeft(): boolean {
      if (fstatSync(wal).size === 0) return false
      const [databasePath, walPath] = [findDatabase(), findWal()]
      // The database may still exist at another path.
      if (!databasePath && !walPath) return fstatSync(database).nlink > 0 && fstatSync(wal).nlink === 0
      return databasePath === undefined || walPath !== `${databasePath}-wal`
    },
    /**
     * `ours`: no other program uses either file. `shared`: others use the database without the log, or with other
     * locks. `taken`: others use the log for another file, or changed the database after the log was deleted. `needed`:
     * the database was deleted, and a copy of it may need the log.
     */
    findUse(): 'ours' | 'shared' | 'taken' | 'needed' {
      recordLoss()
      const [databasePath, walPath] = [findDatabase(), findWal()]
      // The log is not beside its database: a file beside it is another database, or ours, truncated to 0 bytes.
      const beside = walPath?.slice(0, -'-wal'.length)
      const otherDatabase = beside !== undefined && stat(beside) ? beside : undefined
      if (otherDatabase !== undefined && isChanged(fstatSync(wal))) return 'taken'
      // The path of the deleted database leads to no file, or to a possible copy.
      const atPath = stat(path)
      if (fstatSync(database).nlink === 0 && (!atPath || (lost && isCopy(atPath, lost)))) return 'needed'
      // A reader creates an empty log.
      const hasOtherWal = databasePath !== undefined && Number(stat(`${databasePath}-wal`)?.size) > 0
      if (hasOtherWal || isChanged(fstatSync(database))) return walPath === undefined ? 'taken' : 'shared'
      const used = [databasePath, otherDatabase].filter((one) => one !== undefined)
      return used.some(hasOtherLocks) ? 'shared' : 'ours'
    },
    /** True if no path leads to the log. */
    isDeleted: () => findWal() === undefined,
  }
}
