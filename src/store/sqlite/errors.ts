// Result codes of SQLite (sqlite.org/rescode.html). The low byte is the primary code.
const busy = 5
const full = 13
/** CANTOPEN, IOERR, CORRUPT, NOTADB: memory and disk may differ after these. */
const broken = new Set([14, 10, 11, 26])
/** IOERR_FSYNC and IOERR_DIR_FSYNC. */
const unsynced = new Set([1034, 1290])

/** The code of an error; 0 if it is not SQLite's. */
export function codeOf(error: unknown): number {
  return (error as { errcode?: number }).errcode ?? 0
}

export function isFull(error: unknown): boolean {
  return (codeOf(error) & 0xff) === full
}

export function isBusy(error: unknown): boolean {
  return (codeOf(error) & 0xff) === busy
}

/** True if the file must be reopened before the next write. */
export function isBroken(error: unknown): boolean {
  return broken.has(codeOf(error) & 0xff)
}

/** True if a sync failed, SQLite's or our own. */
export function isSyncFailure(error: unknown): boolean {
  return unsynced.has(codeOf(error)) || (error as NodeJS.ErrnoException).syscall === 'fsync'
}
