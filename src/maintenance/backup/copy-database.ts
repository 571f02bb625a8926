// Copies a SQLite database as it is at one moment, while a service may write to it.
import { writeFileSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { codeOf } from '../../store/sqlite/errors.ts'
import { openStoreFile } from '../../store/sqlite/files/read-only.ts'
import { StoreRefused } from '../../store/store.ts'

/** Pages copied between two checks of the signal. */
const stepPages = 256

export type CopyOptions = {
  /** Aborts the copy with the error to reject with. */
  signal?: AbortSignal | undefined
  onProgress?: ((done: number, total: number) => void) | undefined
}

/**
 * Copies the store in the file `from` into the new file `to`, which only its owner may read, as it holds the tokens'
 * hashes. The copy reads within a transaction, and so never starts again when another connection writes
 * (sqlite.org/c3ref/backup_finish.html). Rejects with StoreRefused, or errors of the file system.
 */
export async function copyDatabase(from: string, to: string, options: CopyOptions = {}): Promise<void> {
  const { db: source, checkSame } = openStoreFile(from)
  try {
    source.exec('BEGIN; SELECT count(*) FROM meta')
    writeFileSync(to, '', { flag: 'wx', mode: 0o600 })
    await backup(source, to, { rate: stepPages, progress: makeProgress(options) })
    checkSame?.()
    makeSingle(to)
  } catch (error) {
    if (codeOf(error) === 0) throw error
    throw new StoreRefused(`cannot copy ${from} to ${to}: ${(error as Error).message}`)
  } finally {
    source.close()
  }
}

function makeProgress({ signal, onProgress }: CopyOptions) {
  return ({ totalPages, remainingPages }: { totalPages: number; remainingPages: number }) => {
    signal?.throwIfAborted()
    onProgress?.(totalPages - remainingPages, totalPages)
  }
}

/** Turns WAL mode off, so that the copy is a single file. */
function makeSingle(path: string): void {
  const copy = new DatabaseSync(path)
  try {
    copy.exec('PRAGMA journal_mode = DELETE')
  } finally {
    copy.close()
  }
}
