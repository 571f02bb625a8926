// Whether the path still names the files that are open. SQLite goes on happily with a file that was deleted or replaced,
// and all that it acknowledges then is gone with the process.
//
// Nothing here opens and closes a file that SQLite has open: the first `close` of any descriptor drops all of this
// process's locks on the file (fcntl(2), sqlite.org/howtocorrupt.html).
import { existsSync, realpathSync, type Stats, statSync } from 'node:fs'
import type { IndexState, WalIndex } from './wal-index.ts'

/** Which file a path names: device and inode. */
export type FileId = { dev: number; ino: number }
export type FileIds = { main: FileId; wal: FileId }

/** Undefined when there is no file. */
export function identify(path: string): FileId | undefined {
  const stats = look(path)
  return stats && { dev: stats.dev, ino: stats.ino }
}

export function isSameFile(one: FileId | undefined, other: FileId | undefined): boolean {
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev
}

export function areSameFiles(ids: FileIds, former: FileIds | undefined): boolean {
  return isSameFile(ids.main, former?.main) && isSameFile(ids.wal, former?.wal)
}

/** The `-wal` is still that of a file which the path no longer names. */
export function isOrphan(path: string, ids: FileIds | undefined): boolean {
  return !isSameFile(identify(path), ids?.main) && isSameFile(identify(`${resolveLinks(path)}-wal`), ids?.wal)
}

/** Changes when something is done to the file at the path; undefined when there is none. */
export function fingerprint(path: string): string | undefined {
  const stats = look(path)
  return stats && [stats.dev, stats.ino, stats.size, stats.mtimeMs].join()
}

/** The path of a database without links: SQLite has the `-wal` and the `-shm` beside the file that they lead to. */
export function resolveLinks(path: string): string {
  /* c8 ignore next: it is gone in the same moment */
  return existsSync(path) ? realpathSync(path) : path
}

/**
 * What is wrong, in words for the operator. `salvage`: what is still open is whole, and nobody else works on it; its
 * write-ahead log can be emptied into it.
 */
export type FileFault = { fault: string; salvage: boolean }

export class OpenFiles {
  readonly #path: string
  readonly #walPath: string
  readonly #ids: FileIds
  readonly #index: WalIndex
  #bytes = 0
  #checkpoint = 0

  constructor(path: string, ids: FileIds, index: WalIndex) {
    this.#path = path
    this.#walPath = `${resolveLinks(path)}-wal`
    this.#ids = ids
    this.#index = index
  }

  /**
   * Undefined when all that was committed is in the files that the path names, and while the writer is at work in another
   * thread: it looks for itself.
   */
  findFault(): FileFault | undefined {
    let found: FileFault | undefined
    this.#index.doAlone(() => {
      found = this.#look()
    })
    return found
  }

  #look(): FileFault | undefined {
    if (!this.#index.restore()) return { fault: `${this.#path}-shm was deleted`, salvage: false }
    // Before the files: a checkpoint that begins after it is met as another one by the next look.
    const { checkpoint } = this.#index.read()
    return this.#findFaultInMain(checkpoint) ?? this.#findFaultInWal()
  }

  #findFaultInMain(checkpoint: number): FileFault | undefined {
    const stats = look(this.#path)
    const moved = findMove(this.#path, stats, this.#ids.main)
    if (moved || stats === undefined) return moved
    if (stats.size < this.#bytes && this.#isCut(stats.size, this.#index.read()))
      return cut(this.#path, this.#bytes, stats.size)
    this.#bytes = stats.size
    this.#checkpoint = checkpoint
    return undefined
  }

  /**
   * The checkpoint after a VACUUM makes a file shorter, down to the pages that the database had then. Those that it has
   * got since are in the log.
   */
  #isCut(bytes: number, { mainBytes, loggedBytes, checkpoint }: IndexState): boolean {
    return bytes < (checkpoint === this.#checkpoint ? mainBytes : mainBytes - loggedBytes)
  }

  /** Another process's checkpoint makes the log shorter between two looks, but it changes the index before. */
  #findFaultInWal(): FileFault | undefined {
    for (let looks = 0; looks < 3; looks++) {
      const { change, walBytes, lost } = this.#index.read()
      if (lost) this.#index.discard()
      const stats = look(this.#walPath)
      const moved = findMove(this.#walPath, stats, this.#ids.wal)
      if (moved || stats === undefined) return moved
      if (stats.size >= walBytes) return undefined
      const again = this.#index.read()
      if (again.change === change && again.walBytes === walBytes)
        return cut(this.#walPath, walBytes, stats.size)
    }
    /* c8 ignore next: checkpoints of others between all three looks */
    return undefined
  }
}

function findMove(path: string, found: FileId | undefined, id: FileId): FileFault | undefined {
  if (found === undefined) return { fault: `${path} is gone`, salvage: true }
  if (!isSameFile(found, id)) return { fault: `${path} is another file now`, salvage: true }
  return undefined
}

function cut(path: string, from: number, to: number): FileFault {
  return { fault: `${path} was cut from ${from} to ${to} bytes`, salvage: false }
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}
