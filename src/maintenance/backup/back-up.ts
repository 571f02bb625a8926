// Makes a verified copy of a SQLite store, for backup and restore, while a service may write to it.
import { writeFileSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { type NewFileOptions, writeNewFile } from '../../runtime/new-file.ts'
import { codeOf } from '../../store/sqlite/errors.ts'
import { isStore, openReadOnly } from '../../store/sqlite/files/read-only.ts'
import { StoreRefused } from '../../store/store.ts'
import { describeFault } from '../verify/faults.ts'
import { type VerifyReport, verifyStore } from '../verify/verify-store.ts'

export type BackupOptions = Pick<NewFileOptions, 'replace'> & {
  /** Aborts the copy with the error to reject with. */
  signal?: AbortSignal
  onProgress?: (done: number, total: number, unit: 'page' | 'plant') => void
}

export type BackupReport = Pick<VerifyReport, 'plants' | 'unchecked' | 'checksum'> & {
  copySeconds: number
  verifySeconds: number
}

/** Pages copied between two checks of the signal. */
const stepPages = 256

/**
 * Copies the store in the file `from` to the path `to`, where the copy appears once it is complete, verified, and on
 * stable storage. Rejects with StoreRefused, FileRefused, or errors of the file system.
 */
export function copyVerified(from: string, to: string, options: BackupOptions): Promise<BackupReport> {
  return writeNewFile(to, { ...options, source: from }, async (path) => {
    const startMs = performance.now()
    await copyDatabase(from, path, options)
    const copiedMs = performance.now()
    const { plants, unchecked, checksum } = await verify(path, options)
    const copySeconds = toSeconds(copiedMs - startMs)
    return {
      plants,
      unchecked,
      checksum,
      copySeconds,
      verifySeconds: toSeconds(performance.now() - copiedMs),
    }
  })
}

function toSeconds(ms: number): number {
  return Number((ms / 1000).toFixed(3))
}

/**
 * Copies a database as it is at one moment into the new file `to`, which only its owner may read, as it holds the
 * tokens' hashes. The copy reads within a transaction, and so never starts again when another connection writes
 * (sqlite.org/c3ref/backup_finish.html).
 */
async function copyDatabase(from: string, to: string, { signal, onProgress }: BackupOptions): Promise<void> {
  const { db: source, checkSame } = openReadOnly(from)
  try {
    if (!isStore(source)) throw new StoreRefused(`${from} is not a plant store`)
    source.exec('BEGIN; SELECT count(*) FROM meta')
    writeFileSync(to, '', { flag: 'wx', mode: 0o600 })
    await backup(source, to, {
      rate: stepPages,
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted()
        onProgress?.(totalPages - remainingPages, totalPages, 'page')
      },
    })
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

async function verify(path: string, { signal, onProgress }: BackupOptions): Promise<VerifyReport> {
  const report = await verifyStore(pathToFileURL(path).href, {
    ...(signal && { signal }),
    onProgress: (done, total) => onProgress?.(done, total, 'plant'),
  })
  if (report.faultCount === 0) return report
  const faults = report.faults.map(describeFault).join('; ')
  throw new StoreRefused(`the copy was not kept, because the source is damaged: ${faults}`)
}
