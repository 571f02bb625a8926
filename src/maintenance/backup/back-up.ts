// Makes a verified copy of a SQLite store, for backup and restore, while a service may write to it.
import { writeFileSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { type NewFileOptions, writeNewFile } from '../../runtime/new-file.ts'
import { codeOf } from '../../store/sqlite/errors.ts'
import { openSettled } from '../../store/sqlite/files/settle.ts'
import { StoreRefused } from '../../store/store.ts'
import { describeFault } from '../verify/faults.ts'
import { verifyApart } from './verify-apart.ts'

export type BackupOptions = Pick<NewFileOptions, 'replace'> & {
  /** Aborts the copy with the error to reject with. */
  signal?: AbortSignal
  /** `unit`: of the copy; the check, which follows it, counts plants. */
  onProgress?: (done: number, total: number, unit?: 'page') => void
}

/** Pages copied between two checks of the signal. */
const stepPages = 256

/**
 * Copies the store in the file `from` to the path `to`, where the copy appears once it is complete, verified, and on
 * stable storage. Resolves to what was found in it, and how long each step took. Rejects with StoreRefused, FileRefused,
 * or errors of the file system.
 */
export function copyVerified(from: string, to: string, options: BackupOptions) {
  return writeNewFile(to, { ...options, source: from }, async (path) => {
    const startMs = performance.now()
    await copyDatabase(from, path, options)
    const copiedMs = performance.now()
    const { plants, unchecked, checksum, faults } = await verifyApart(pathToFileURL(path).href, options)
    if (faults.length > 0) {
      const reason = faults.map(describeFault).join('; ')
      throw new StoreRefused(`the copy was not kept, because the source is damaged: ${reason}`)
    }
    const seconds = (ms: number) => Number((ms / 1000).toFixed(3))
    const times = {
      copySeconds: seconds(copiedMs - startMs),
      verifySeconds: seconds(performance.now() - copiedMs),
    }
    return { plants, unchecked, checksum, ...times }
  })
}

/**
 * Copies a database as it is at one moment into the new file `to`, which only its owner may read, as it holds the
 * tokens' hashes. The copy reads within a transaction, and so never starts again when another connection writes
 * (sqlite.org/c3ref/backup_finish.html).
 */
async function copyDatabase(from: string, to: string, { signal, onProgress }: BackupOptions): Promise<void> {
  const { db: source, checkSame } = openSettled(from)
  try {
    source.exec('BEGIN; SELECT count(*) FROM meta')
    writeFileSync(to, '', { flag: 'wx', mode: 0o600 })
    await backup(source, to, {
      rate: stepPages,
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted()
        onProgress?.(totalPages - remainingPages, totalPages, 'page')
      },
    })
    /* c8 ignore next: it takes another user, in a process of its own */
    checkSame?.()
    makeSingle(to)
  } catch (error) {
    if (codeOf(error) === 0) throw error
    throw new StoreRefused(`cannot copy ${from} to ${to}: ${(error as Error).message}`)
  } finally {
    source.close()
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
