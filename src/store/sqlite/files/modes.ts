// File modes: only the user of a database may read it, whatever the umask, as it holds the hashes of tokens.
import { chmodSync, statSync, writeFileSync } from 'node:fs'

const ownMode = 0o600
const othersBits = 0o077

/** Creates an empty file for SQLite, unless one exists. SQLite gives `-wal` and `-shm` the same mode. */
export function makeOwnFile(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: ownMode })
  } catch (error) {
    // Created by another process at the same moment, or a link: leave both to SQLite.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Removes the rights of other users on the files of an open database, where this user may do so. */
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
