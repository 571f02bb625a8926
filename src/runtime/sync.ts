// Syncs files, and the directories that name them, to stable storage.
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

/** Syncs a file, never a database that this process has open: see store/sqlite/files/files.ts. */
export function syncFile(path: string): void {
  // Windows syncs only what was opened to be written; elsewhere a user who may only read can sync as well.
  /* c8 ignore next: coverage is counted on Linux */
  syncOpened(openSync(path, process.platform === 'win32' ? 'r+' : 'r'))
}

function syncOpened(descriptor: number): void {
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Syncs the directory of a new file, so that its name survives a power failure. */
export function syncDirectoryOf(path: string): void {
  /* c8 ignore next: coverage is counted on Linux; on Windows a directory cannot be opened, and need not be */
  if (process.platform === 'win32') return
  // A directory cannot be opened to be written.
  syncOpened(openSync(dirname(path), 'r'))
}
