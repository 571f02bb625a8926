// Syncs files, and the directories that name them, to stable storage.
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

/** Never of a database that this process has open: see store/sqlite/files/files.ts. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** So that the name of a new file is still in its directory after a power failure. */
export function syncDirectoryOf(path: string): void {
  /* c8 ignore next: coverage is counted on Linux; on Windows a directory cannot be opened, and need not be */
  if (process.platform === 'win32') return
  syncFile(dirname(path))
}
