// Checks that the path still names the open files. SQLite goes on writing to a file that was deleted or replaced, and
// everything acknowledged from then on would be lost with the process.
//
// Nothing here opens and closes a file that SQLite has open: closing any descriptor would drop all of this process's
// locks on the file (fcntl(2), sqlite.org/howtocorrupt.html).
import { statSync } from 'node:fs'
import { type FileId, isSameFile, resolveLinks } from '../../../runtime/same-file.ts'
import { StoreRefused } from '../../store.ts'

/** The path no longer names the open files. */
export class FilesLost extends StoreRefused {}

export class OpenFiles {
  /** Paths of the database, its `-wal` and its `-shm`. */
  readonly #paths: string[]
  /** The open files, in the same order. */
  readonly ids: FileId[]
  /** The last known length of the database. */
  #bytes = 0

  /** `ids`: of the open files; by default of those that the path names now. Throws errors of the file system. */
  constructor(path: string, ids?: FileId[]) {
    const target = resolveLinks(path)
    this.#paths = [path, `${target}-wal`, `${target}-shm`]
    this.ids = ids ?? this.#paths.map((name) => statSync(name)).map(({ dev, ino }) => ({ dev, ino }))
  }

  get path(): string {
    return this.#paths[0] as string
  }

  /**
   * Finds the reason, for the operator, why nothing may be added; undefined when there is none. Never throws: a file
   * that cannot be examined counts as lost.
   */
  findFault(): string | undefined {
    return this.#findFaultIn(0) ?? this.#findFaultIn(1) ?? this.#findFaultIn(2)
  }

  /** Throws FilesLost when there is a fault. */
  check(): void {
    const fault = this.findFault()
    if (fault !== undefined) throw new FilesLost(fault)
  }

  #findFaultIn(index: number): string | undefined {
    const path = this.#paths[index] as string
    try {
      const stats = statSync(path, { throwIfNoEntry: false })
      if (stats === undefined) return `${path} is gone`
      if (!isSameFile(stats, this.ids[index])) return `${path} is another file now`
      // An append-only log never shrinks.
      if (index === 0 && stats.size < this.#bytes)
        return `${path} was cut from ${this.#bytes} to ${stats.size} bytes`
      if (index === 0) this.#bytes = stats.size
      return undefined
    } catch (error) {
      return `${path} cannot be looked at (${(error as NodeJS.ErrnoException).code})`
    }
  }
}
