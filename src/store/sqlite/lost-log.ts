// The write-ahead log of a database that was moved, deleted or replaced. The next process would not find a log that is
// apart from its database, or would mistake it for the log of another one. So it is written back before the end, unless
// somebody else may be using either file.
import { fstatSync, readlinkSync, statSync } from 'node:fs'
import { type FileId, isSameFile, resolveLinks } from '../../file-system.ts'
import type { OpenFiles } from './files.ts'

const find = (name: string) => statSync(name, { throwIfNoEntry: false })

/** `database`, `log`: descriptors of the open files. */
export function watchLog({ path, ids, findFault }: OpenFiles, database: number, log: number) {
  const readChangeMs = () => fstatSync(database).ctimeMs
  /** The time of the change by which the files were lost, or of our own last change since. */
  let lostMs: number | undefined

  /** Notes a loss. To be called now and then: whatever is done to the database later changes its times again. */
  function note(): void {
    lostMs = findFault() === undefined ? undefined : (lostMs ?? readChangeMs())
  }

  /** Finds where an open file is now; undefined if it was deleted. Throws if it was moved, except on Linux. */
  function findPlace(descriptor: number, id: FileId | undefined, ending: string): string | undefined {
    const named = resolveLinks(path) + ending
    if (isSameFile(find(named), id)) return named
    if (fstatSync(descriptor).nlink === 0) return undefined
    const place = readlinkSync(`/proc/self/fd/${descriptor}`)
    return isSameFile(find(place), id) ? place : undefined
  }
  // One that was cut to nothing counts as deleted: the log may hold all of it.
  const findDatabase = () => (fstatSync(database).size > 0 ? findPlace(database, ids[0], '') : undefined)
  const findLog = () => findPlace(log, ids[1], '-wal')

  /** True if the last change of a file beside a `-shm`, which holds the locks, was ours. */
  function isOurs(name: string, base: string): boolean {
    const index = find(`${base}-shm`)
    const hasOurLocks = index === undefined || isSameFile(index, ids[2])
    return hasOurLocks && Number(find(name)?.mtimeMs) <= Number(lostMs)
  }

  return {
    note,
    /** To be called after a change of our own: what is changed later, is changed by somebody else. */
    noteOwnChange(): void {
      lostMs = readChangeMs()
    },
    /** True if the log has contents, and is not beside its database any more. */
    isLeft(): boolean {
      if (fstatSync(log).size === 0) return false
      const [base, name] = [findDatabase(), findLog()]
      return name !== (base && `${base}-wal`)
    },
    /** True if nobody can have opened the database without the log, or the log with another database. */
    isUnused(): boolean {
      note()
      const [base, name] = [findDatabase(), findLog()]
      const other = name?.slice(0, -'-wal'.length)
      // A reader makes an empty log.
      if (base && (find(`${base}-wal`)?.size || !isOurs(base, base))) return false
      return !name || !other || !find(other) || isOurs(name, other)
    },
    /** True if no path leads to the log. */
    isDeleted: () => findLog() === undefined,
  }
}
