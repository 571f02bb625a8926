// The identity, durability and ownership of files.
import * as fs from 'node:fs'
import { dirname, resolve } from 'node:path'
import { attempt } from './attempt.ts'

/** Device and inode, which identify a file independently of its paths. */
export type FileId = { dev: number; ino: number }

/** True if both exist and are one file. */
export const isSameFile = (one: FileId | undefined, other: FileId | undefined) =>
  one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev

/**
 * Resolves links in the path of a database, which need not exist: SQLite keeps `-wal` and `-shm` next to the real file.
 * `links`: the number of dangling links to follow.
 */
export function resolveLinks(path: string, links = 40): string {
  if (fs.existsSync(path)) return fs.realpathSync.native(path)
  const target = attempt(() => resolve(fs.realpathSync.native(dirname(path)), fs.readlinkSync(path)))
  return target === undefined || links === 0 ? path : resolveLinks(target, links - 1)
}

/**
 * Syncs a file. Not for a database that this process has open: closing any descriptor of a file drops all locks of the
 * process on it (fcntl(2), sqlite.org/howtocorrupt.html).
 */
export function syncFile(path: string): void {
  // Windows syncs only files that are open for writing. On other systems, read permission is sufficient.
  syncAndClose(fs.openSync(path, process.platform === 'win32' ? 'r+' : 'r'))
}

/**
 * Syncs the write-ahead log of a database, if it exists: another process may have just checkpointed and removed it.
 * `ignored`: the codes of errors to ignore.
 */
export const syncWal = (path: string, ignored = ['ENOENT']) =>
  ignoring(ignored, () => syncFile(`${resolveLinks(path)}-wal`))

/** Syncs the directory of a file, so that its name survives a power cut. */
export function syncDirectoryOf(path: string): void {
  // Windows cannot open a directory, and does not need this.
  if (process.platform !== 'win32') syncAndClose(fs.openSync(dirname(path), 'r'))
}

function syncAndClose(descriptor: number): void {
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

/** As root, gives a new file to the owner of its directory, such as the dynamic user of a systemd service. */
export function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = fs.statSync(dirname(path))
  // In a container, root may lack the capability, or the user may not be mapped. `lchown` does not follow a link, which
  // the owner of the directory may have created.
  ignoring(['EPERM', 'EINVAL'], () => fs.lchownSync(path, uid, gid))
}

/** Runs `act`. Ignores errors with these codes. */
export function ignoring(codes: string[], act: () => void): void {
  try {
    act()
  } catch (error) {
    if (!codes.includes(String((error as NodeJS.ErrnoException).code))) throw error
  }
}
