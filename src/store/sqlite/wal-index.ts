// The wal-index (`-shm`): a file that every process on the database maps into its memory. Touching a page that was cut
// off it ends the process (SIGBUS), so it is made whole again before it is touched. What is in it can be lost: SQLite
// builds it anew from the `-wal` when its header is empty (sqlite.org/walformat.html#walidxfmt).
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { resolveLinks } from './files.ts'
import type { IndexLock } from './index-lock.ts'

/** Where, behind the header and the state of checkpoints, the page number of the first frame is. */
const firstFrameAt = 136
/** The header and the first of the tables behind it. */
const blockBytes = 32 * 1024
const lookBytes = firstFrameAt + 4
/** Places of 32 bits: the first salt of the log, another one whenever it begins anew; and up to which frame the latest
 * checkpoint meant to get. */
const saltAt = 8
const attemptedAt = 32
/** As long as no log of sensible size needs it: a longer file than before is harmless. */
const restoredBytes = 2 ** 20
const walHeaderBytes = 32
const frameHeaderBytes = 24

/**
 * `change`: differs after each commit; `checkpoint`: differs once another one has begun; `mainBytes` and `walBytes`: how
 * long the files are when they hold all that was committed; `loggedBytes`: how much of the former the log may hold instead;
 * `lost`: the header, or what it speaks of, is no longer there.
 */
export type IndexState = {
  change: number
  checkpoint: number
  mainBytes: number
  walBytes: number
  loggedBytes: number
  lost: boolean
}

const lostState: IndexState = {
  change: 0,
  checkpoint: 0,
  mainBytes: 0,
  walBytes: 0,
  loggedBytes: 0,
  lost: true,
}

/**
 * Open descriptors by file, and who uses them. State of the module, because it is state of the process: the first
 * `close` of any descriptor drops all locks that the process has in the file (fcntl(2)), whichever store they are of.
 */
const openFiles = new Map<string, { descriptor: number; users: number }>()

export class WalIndex {
  readonly descriptor: number
  readonly #words = new Uint32Array(lookBytes / 4)
  readonly #bytes = new Uint8Array(this.#words.buffer)
  readonly #halves = new Uint16Array(this.#words.buffer)
  readonly #lock: IndexLock | undefined
  #isAlone = false
  #size = 0

  /**
   * `descriptor`: of the open `-shm`, which whoever opened it closes.
   * `lock`: tells whether the writer is in a transaction, whose COMMIT over a void index would hide the log before. The
   * writer itself needs none.
   */
  constructor(descriptor: number, lock?: IndexLock) {
    this.descriptor = descriptor
    this.#lock = lock
  }

  /** Opens that of the database at a path, which SQLite must have open. */
  static open(path: string, lock: IndexLock): WalIndex {
    const place = `${resolveLinks(path)}-shm`
    const former = openFiles.get(name(statSync(place)))
    const descriptor = former?.descriptor ?? openSync(place, 'r+')
    const key = name(fstatSync(descriptor))
    openFiles.set(key, { descriptor, users: (openFiles.get(key)?.users ?? 0) + 1 })
    return new WalIndex(descriptor, lock)
  }

  /**
   * Makes the file as long as it was, and void. False when it was deleted: other processes have another. Throws while
   * it is in use: nothing must touch it then.
   */
  restore(): boolean {
    const { size, nlink } = fstatSync(this.descriptor)
    if (size >= this.#size) this.#size = size
    else if (!this.doAlone(() => this.#makeWhole()))
      /* c8 ignore next: the -shm is cut in the middle of a transaction */
      throw new Error('the -shm file was cut')
    return nlink > 0
  }

  /** Does `work` unless a transaction of another thread is under way: then it is false. None begins meanwhile. */
  doAlone(work: () => void): boolean {
    if (!this.#lock || this.#isAlone) {
      work()
      return true
    }
    return this.#lock.tryLook(() => {
      this.#isAlone = true
      try {
        work()
      } finally {
        this.#isAlone = false
      }
    })
  }

  #makeWhole(): void {
    /* c8 ignore next: another thread did it in the same moment */
    if (fstatSync(this.descriptor).size >= this.#size) return
    // Its header may still be there, and speak of tables that are not.
    this.discard()
    this.#size = Math.max(this.#size, restoredBytes)
    ftruncateSync(this.descriptor, this.#size)
  }

  read(): IndexState {
    const bytes = readSync(this.descriptor, this.#bytes, 0, lookBytes, 0)
    const [words, halves] = [this.#words, this.#halves]
    const isThere = bytes === lookBytes && this.#bytes[12] === 1
    if (!isThere) return lostState
    const [change, frames, pages] = [words[2] as number, words[4] as number, words[5] as number]
    // 65,536 is written as 1.
    /* c8 ignore next: no database of ours has pages of 64 KiB */
    const pageBytes = halves[7] === 1 ? 65_536 : (halves[7] as number)
    return {
      change,
      checkpoint: (words[saltAt] as number) * 2 ** 20 + (words[attemptedAt] as number),
      mainBytes: pages * pageBytes,
      loggedBytes: frames * pageBytes,
      walBytes: frames === 0 ? 0 : walHeaderBytes + frames * (frameHeaderBytes + pageBytes),
      lost: frames > 0 && words[firstFrameAt / 4] === 0,
    }
  }

  /** Empties it, so that the next one to look builds it anew. */
  discard(): void {
    writeSync(this.descriptor, new Uint8Array(blockBytes), 0, blockBytes, 0)
  }

  /** After the connections that it was opened for. */
  close(): void {
    const key = name(fstatSync(this.descriptor))
    /* c8 ignore next: each one that is closed was opened */
    const users = (openFiles.get(key)?.users ?? 0) - 1
    if (users > 0) {
      openFiles.set(key, { descriptor: this.descriptor, users })
      return
    }
    openFiles.delete(key)
    closeSync(this.descriptor)
  }
}

function name({ dev, ino }: Stats): string {
  return `${dev}:${ino}`
}
