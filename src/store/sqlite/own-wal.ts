// Refuses a database whose write-ahead log may be under another name, or that is next to the log of another database.
import { lstatSync, readFileSync, readSync, statSync } from 'node:fs'
import { attempt } from '../../attempt.ts'
import { isSameFile, resolveLinks } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'

/** Throws StoreRefused if a log is next to a link, where SQLite ignores it: the database was probably moved. */
export function refuseStrayWal(path: string): void {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })
  if (!wal?.size || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  if (isSameFile(wal, statSync(`${resolveLinks(path)}-wal`, { throwIfNoEntry: false }))) return
  throw new StoreRefused(
    `SQLite would ignore ${path}-wal, because ${path} is a symbolic link: if the database was moved without its log, move it back, stop the service, then move both; otherwise move the log away`,
  )
}

/**
 * Throws StoreRefused if a log is next to a backup, which has none. Byte 18 is 2 in WAL mode, and 1 in a backup
 * (sqlite.org/fileformat2.html). It is read after the log is found, because another process may be setting the mode.
 */
export function refuseForeignWal(path: string, descriptor: number): void {
  const wal = `${resolveLinks(path)}-wal`
  const hasWal = Number(statSync(wal, { throwIfNoEntry: false })?.size) > 0
  const header = Buffer.alloc(19)
  readSync(descriptor, header, { position: 0 })
  if (hasWal && header[18] === 1)
    throw new StoreRefused(`${wal} is not of this database: stop all processes, then move this file away`)
}

/**
 * Throws StoreRefused if the log may be under another name: each hard link has a separate log, and a bind-mounted file
 * leaves its log in the original directory.
 */
export function refuseOtherName(path: string): void {
  if (Number(statSync(path, { throwIfNoEntry: false })?.nlink) > 1)
    throw new StoreRefused(`${path} has hard links: stop all processes, and keep only one, with its -wal`)
  // The fifth field is the mount point, with \040 for a space (proc_pid_mountinfo(5)).
  const name = resolveLinks(path).replaceAll(' ', '\\040')
  const mounts = attempt(() => readFileSync('/proc/self/mountinfo', 'utf8').split('\n'))
  if (mounts?.some((line) => line.split(' ')[4] === name))
    throw new StoreRefused(`${path} is mounted without its log: mount its directory instead`)
}
