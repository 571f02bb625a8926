// Makes a verified copy of a SQLite store, for backup and restore.
import { pathToFileURL } from 'node:url'
import { NewFile, type NewFileOptions } from '../../runtime/new-file.ts'
import { StoreRefused } from '../../store/store.ts'
import { describeFault } from '../verify/faults.ts'
import { type VerifyReport, verifyStore } from '../verify/verify-store.ts'
import { copyDatabase } from './copy-database.ts'

export type BackupOptions = NewFileOptions & {
  /** Aborts the copy with the error to reject with. */
  signal?: AbortSignal
  onProgress?: (done: number, total: number, unit: 'page' | 'plant') => void
}

/** `copyMs`, `verifyMs`: durations of the steps. */
export type BackupReport = Pick<VerifyReport, 'plants' | 'unchecked' | 'checksum'> & {
  copyMs: number
  verifyMs: number
}

/**
 * Copies the store in the file `from` to the path `to`, where the copy appears once it is complete, verified, and on
 * stable storage. Rejects with StoreRefused, FileRefused, or errors of the file system.
 */
export async function copyVerified(from: string, to: string, options: BackupOptions): Promise<BackupReport> {
  const file = new NewFile(to, { ...options, source: from })
  const { signal, onProgress } = options
  try {
    const startedAt = performance.now()
    await copyDatabase(from, file.temporaryPath, {
      signal,
      onProgress: (done, total) => onProgress?.(done, total, 'page'),
    })
    const copiedAt = performance.now()
    const { plants, unchecked, checksum } = await verify(file.temporaryPath, options)
    const verifyMs = performance.now() - copiedAt
    file.publish()
    return { plants, unchecked, checksum, copyMs: copiedAt - startedAt, verifyMs }
  } catch (error) {
    file.discard()
    throw file.explain(error)
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
