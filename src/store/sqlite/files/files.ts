// Tells whether the path still names the files that are open. SQLite goes on with a file that was deleted or replaced, and
// all that it acknowledges then is gone with the process.
//
// Nothing here opens and closes a file that SQLite has open: the first `close` of any descriptor drops all of this
// process's locks on the file (fcntl(2), sqlite.org/howtocorrupt.html).
import { statSync } from 'node:fs'
import { type FileId, isSameFile, resolveLinks } from '../../../runtime/same-file.ts'

/** `ids`: of the database, its `-wal` and its `-shm`; `bytes`: the last known length of the database. */
export type FileIds = { ids: FileId[]; bytes: number }

export class OpenFiles {
  /** Paths of the database, its `-wal` and its `-shm`. */
  readonly #paths: string[]
  readonly #ids: FileId[]
  #bytes: number

  /** `known`: which files these must be; by default those that the path names now, or it throws what the system says. */
  constructor(path: string, known?: FileIds) {
    const target = resolveLinks(path)
    this.#paths = [path, `${target}-wal`, `${target}-shm`]
    this.#ids = known?.ids ?? this.#paths.map((name) => statSync(name)).map(({ dev, ino }) => ({ dev, ino }))
    this.#bytes = known?.bytes ?? 0
  }

  get path(): string {
    return this.#paths[0] as string
  }

  /** For another thread, whose files must be these. */
  get known(): FileIds {
    return { ids: this.#ids, bytes: this.#bytes }
  }

  /**
   * Why nothing may be added, in words for the operator; undefined when all is well. Never throws: a file that cannot be
   * looked at is as good as gone.
   */
  findFault(): string | undefined {
    return this.#findFaultIn(0) ?? this.#findFaultIn(1) ?? this.#findFaultIn(2)
  }

  #findFaultIn(index: number): string | undefined {
    const path = this.#paths[index] as string
    try {
      const stats = statSync(path, { throwIfNoEntry: false })
      if (stats === undefined) return `${path} is gone`
      if (!isSameFile(stats, this.#ids[index])) return `${path} is another file now`
      return index === 0 ? this.#compareSize(path, stats.size) : undefined
    } catch (error) {
      return `${path} cannot be looked at (${(error as NodeJS.ErrnoException).code})`
    }
  }

  /** A log that is only appended to never makes its file shorter. */
  #compareSize(path: string, bytes: number): string | undefined {
    if (bytes < this.#bytes) return `${path} was cut from ${this.#bytes} to ${bytes} bytes`
    this.#bytes = bytes
    return undefined
  }
}
