// Makes a verified copy of a SQLite store, for backup and restore, while a service may write to it.
import { createWriteStream, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'
import { type NewFileOptions, nameTemporary, writeNewFile } from '../../runtime/new-file.ts'
import { StoreRefused } from '../../store/errors.ts'
import { codeOf } from '../../store/sqlite/errors.ts'
import { openStoreFile } from '../../store/sqlite/files/read-only.ts'
import { openSettled } from '../../store/sqlite/files/settle.ts'
import { describeFault } from '../verify/faults.ts'
import { verifyApart } from './verify-apart.ts'

export type BackupOptions = Pick<NewFileOptions, 'replace'> & {
  /** Aborts the copy with the error to reject with. */
  signal?: AbortSignal
  /** `unit`: of the copy; the check, which follows it, counts plants. */
  onProgress?: (done: number, total: number, unit?: 'page') => void
}

/** Only its owner may read a copy, as it holds the hashes of tokens. */
const ownMode = 0o600
/** Pages copied between two checks of the signal. */
const stepPages = 256

/**
 * Copies the store in the file `from` to the path `to`, where the copy appears once it is complete, verified, and on
 * stable storage. Resolves to what was found in it, and how long each step took. Rejects with StoreRefused, FileRefused,
 * or errors of the file system.
 */
export function copyVerified(from: string, to: string, options: BackupOptions) {
  return writeVerified(to, { ...options, source: from }, (path) => copyDatabase(from, path, options))
}

/**
 * Writes a verified copy of the store in the file `from` to a stream, which stays open. Until it is verified, it is in
 * a file beside the store, or in the directory `TMPDIR`, so it takes that much room.
 */
export async function copyToStream(from: string, destination: Writable, options: BackupOptions) {
  const copy = nameTemporary(from, process.env.TMPDIR ?? dirname(from))
  const report = await copyVerified(from, copy, options)
  const file = await open(copy)
  // From here on nothing is left behind, however the process ends.
  rmSync(copy)
  await pipeline(file.createReadStream(), destination, { end: false, signal: options.signal })
  return report
}

/** Restores a copy that comes from a stream; like `copyVerified`. */
export function copyFromStream(source: Readable, to: string, options: BackupOptions) {
  return writeVerified(to, options, async (path) => {
    const file = createWriteStream(path, { flags: 'wx', mode: ownMode })
    await pipeline(source, file, { signal: options.signal })
    try {
      openStoreFile(path).db.close()
      makeSingle(path)
    } catch (error) {
      throw new StoreRefused((error as Error).message.replaceAll(path, 'stdin'))
    }
  })
}

/** Writes a new file with `copy`, and verifies what is in it. */
function writeVerified(
  to: string,
  options: BackupOptions & NewFileOptions,
  copy: (path: string) => Promise<void>,
) {
  return writeNewFile(to, options, async (path) => {
    const startMs = performance.now()
    await copy(path)
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
 * Copies a database as it is at one moment into the new file `to`. The copy reads within a transaction, and so never starts again when another connection writes
 * (sqlite.org/c3ref/backup_finish.html).
 */
async function copyDatabase(from: string, to: string, { signal, onProgress }: BackupOptions): Promise<void> {
  const { db: source, checkSame } = openSettled(from)
  try {
    source.exec('BEGIN; SELECT count(*) FROM meta')
    writeFileSync(to, '', { flag: 'wx', mode: ownMode })
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
