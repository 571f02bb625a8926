// File modes: only its user may read a database, whatever the umask and the directory. It holds the hashes of tokens.
import { chmodSync, statSync, writeFileSync } from 'node:fs'

const ownMode = 0o600
const othersBits = 0o077

/** Makes the empty file that SQLite is to fill, unless one is there. SQLite gives `-wal` and `-shm` the same mode. */
export function makeOwnFile(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: ownMode })
  } catch (error) {
    // Another process made it in the same moment, or it is a link: SQLite decides what comes of that.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Takes from others what they may do with the files of an open database, where this user may decide that. */
export function makePrivate(path: string): void {
  for (const name of [path, `${path}-wal`, `${path}-shm`]) {
    const stats = statSync(name, { throwIfNoEntry: false })
    const isOwn = stats?.uid === process.geteuid?.()
    if (stats && isOwn && (stats.mode & othersBits) !== 0) changeMode(name, stats.mode & ~othersBits & 0o777)
  }
}

function changeMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
    /* c8 ignore next 4: a file system without modes, whose owner decides at the mount who may read */
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOTSUP') throw error
  }
}
