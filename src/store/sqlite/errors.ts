// Result codes of SQLite (sqlite.org/rescode.html). The low byte is the primary code.
const codes = { busy: 5, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, protocol: 15, notADatabase: 26 }
/** After these errors, memory and disk may differ. */
const broken = [codes.ioError, codes.corrupt, codes.cannotOpen, codes.notADatabase]
/** IOERR_FSYNC and IOERR_DIR_FSYNC. */
const unsynced = [1034, 1290]
/** IOERR_SHMSIZE: there is no room for the `-shm`. */
const noRoom = 4874

/** The result code of an error; 0 if it is not an error of SQLite. */
const codeOf = (error: unknown): number => (error as { errcode?: number }).errcode ?? 0

const primary = (error: unknown) => codeOf(error) & 0xff

/** True if there is no room on the disk, also for the `-shm`. */
export const isFull = (error: unknown) => primary(error) === codes.full || codeOf(error) === noRoom
/** True if a program in another journal mode was killed: its changes must be rolled back, which requires writing. */
export const needsRollback = (error: unknown) => codeOf(error) === 776
/** True if a file cannot be created, written or read (SQLite reports EIO of a read as corruption). */
export const isUnwritable = (error: unknown) =>
  [codes.ioError, codes.full, codes.cannotOpen, codes.corrupt].includes(primary(error))
/** True if another program has a lock. `protocol`: SQLite has waited 10 s for one. */
export const isBusy = (error: unknown) => [codes.busy, codes.protocol].includes(primary(error))
/** True if the file must be reopened before the next write. */
export const isBroken = (error: unknown) => broken.includes(primary(error))
/** True if a sync by SQLite or by this process failed. */
export const isSyncFailure = (error: unknown) =>
  unsynced.includes(codeOf(error)) || (error as NodeJS.ErrnoException).syscall === 'fsync'
