// Checks that the path still names the open files. SQLite keeps writing to a file that was deleted or replaced, and
// everything acknowledged from then on would be lost with the process.
import { statSync } from 'node:fs'
import { StoreRefused } from '../errors.ts'
import { type FileId, isSameFile, resolveLinks } from './file-system.ts'

export type OpenFiles = ReturnType<typeof noteFiles>

/**
 * Notes the open files of a database: those with these `ids`, or those that are at the path now, with the `-wal` and
 * `-shm` next to it. Throws errors of the file system.
 */
export function noteFiles(path: string, known?: FileId[]) {
  const target = resolveLinks(path)
  const paths = [path, `${target}-wal`, `${target}-shm`]
  const ids = known ?? paths.map((name) => statSync(name)).map(({ dev, ino }) => ({ dev, ino }))
  /** The last known length of the database. */
  let bytes = 0

  function findFaultIn(name: string, index: number): string | undefined {
    try {
      const stats = statSync(name, { throwIfNoEntry: false })
      if (stats === undefined) return `${name} was moved or deleted`
      if (!isSameFile(stats, ids[index])) return `${name} was replaced by another file`
      if (index > 0) return undefined
      // An append-only log never shrinks.
      if (stats.size < bytes) return `${name} shrank from ${bytes} to ${stats.size} bytes`
      bytes = stats.size
      return undefined
    } catch (error) {
      return `${name} cannot be examined (${(error as NodeJS.ErrnoException).code})`
    }
  }

  /**
   * Returns why nothing may be added, as a message for the operator; undefined if all is well. Never throws: a file
   * that cannot be examined counts as lost.
   */
  function findFault(): string | undefined {
    const fault = paths.map(findFaultIn).find((one) => one !== undefined)
    return (
      fault && `${fault}: put the original file back, or restart to use the file that is now at this path`
    )
  }

  /** Throws StoreRefused if there is a fault. */
  function check(): void {
    const fault = findFault()
    if (fault !== undefined) throw new StoreRefused(fault)
  }

  return { path, ids, findFault, check }
}
