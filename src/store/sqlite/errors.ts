// The result codes of SQLite, and what they mean (sqlite.org/rescode.html). The low byte is the primary code.
const busy = 5
const full = 13
/** CANTOPEN, IOERR, CORRUPT, NOTADB: what is in memory and what is on the disk may differ from here on. */
const broken = new Set([14, 10, 11, 26])

/** 0 for an error that is not SQLite's. */
export function codeOf(error: unknown): number {
  return (error as { errcode?: number }).errcode ?? 0
}

export function isFull(error: unknown): boolean {
  return (codeOf(error) & 0xff) === full
}

export function isBusy(error: unknown): boolean {
  return (codeOf(error) & 0xff) === busy
}

/** True when the file must be opened anew before it is written again. */
export function isBroken(error: unknown): boolean {
  return broken.has(codeOf(error) & 0xff)
}
