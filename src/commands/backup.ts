// backup: copies a SQLite database while a service runs on it. restore does the same in the other direction.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { CommandError, count, doLongWork, type Progress, reportFile } from '../cli/console.ts'
import { type FileOptions, writeNewFile } from '../cli/new-file.ts'
import { addWorkOptions, findDatabase, type WorkOptions } from '../cli/options.ts'
import { engineOf } from '../store/engines.ts'
import { openReadOnly } from '../store/sqlite/read-only.ts'

const help = `
The service may be running. FILE appears once the backup is complete, verified, and on stable storage; a killed backup
may leave files with .partial in their names: delete them. FILE contains the hashes of tokens, so only you can read it.
With - the backup goes to stdout, after it is verified in a temporary file in TMPDIR or beside the database. For
PostgreSQL, use its own tools, such as pg_dump.`

/** Only its owner may read a copy, because it contains the hashes of tokens. */
const ownMode = 0o600
/** Number of pages copied at a time. */
const stepPages = 256

export function define(command: Command): void {
  command.argument('<file>', 'the file to create; - is stdout').option('--force', 'replace FILE if it exists')
  addWorkOptions(command).addHelpText('after', help).action(runBackup)
}

async function runBackup(file: string, options: WorkOptions & { force?: true }): Promise<void> {
  const from = findFile(options, 'backup is for SQLite: use pg_dump or pg_basebackup')
  const isStdout = file === '-'
  const report = await doLongWork({ quiet: options.quiet || isStdout, advice }, (progress, signal) => {
    const copyOptions = { progress, signal, replace: options.force }
    return isStdout ? writeVerified(from, copyOptions) : copyVerified(from, file, copyOptions)
  })
  const done = `backed up ${count(report.plants, 'plant')}${isStdout ? '' : ` to ${file}`}`
  await reportFile(file, { file, ...report }, `${done}; verified, SHA-256 ${report.checksum}`, options)
}

export const advice = 'interrupted: the copy is incomplete. Run the command again'

/** Returns the path of the database file. Throws CommandError for a database without a file; `instead`: what to use. */
export function findFile(options: WorkOptions, instead: string): string {
  const url = findDatabase(options)
  const { name, path } = engineOf(url)
  if (path) return path(url)
  throw new CommandError(`the database is ${name}, and ${instead}`)
}

type CopyOptions = FileOptions & { progress: Progress }

/**
 * Copies a store, from the file or stream `from`, to the path `to`, where it appears once it is complete, verified, and
 * on stable storage. Resolves to the result of the verification.
 */
export function copyVerified(from: string | NodeJS.ReadableStream, to: string, options: CopyOptions) {
  const source = typeof from === 'string' ? from : undefined
  if (source !== undefined && !statSync(source, { throwIfNoEntry: false })?.isFile())
    throw new CommandError(`no regular file at ${resolve(source)}`)
  return writeNewFile(to, { ...options, source }, async (path) => {
    writeFileSync(path, '', { flag: 'wx', mode: ownMode })
    if (typeof from === 'string') await copyDatabase(from, path, options)
    else await pipeline(from, createWriteStream(path))
    // Without WAL mode the copy is a single file.
    const copy = new DatabaseSync(path)
    copy.exec('PRAGMA journal_mode = DELETE')
    copy.close()
    return verifyCopy(path, options)
  })
}

/** Creates and verifies a copy in a temporary file, then writes it to stdout. */
async function writeVerified(from: string, options: CopyOptions) {
  const copy = join(process.env.TMPDIR || dirname(from), `.${randomUUID()}.partial`)
  const report = await copyVerified(from, copy, options)
  const file = createReadStream(copy, { fd: openSync(copy, 'r') })
  // Deleted at once: the contents disappear when the descriptor is closed, even by a kill.
  rmSync(copy)
  await pipeline(file, process.stdout, { end: false })
  return report
}

/** Runs the command `verify` on a copy, in a process that can be aborted. Rejects with CommandError for faults. */
async function verifyCopy(path: string, { signal, progress }: CopyOptions) {
  progress.end()
  const cli = fileURLToPath(new URL(`../cli${extname(import.meta.url)}`, import.meta.url))
  const database = ['--database-url', pathToFileURL(path).href]
  const args = [...process.execArgv, cli, 'verify', ...database, '--json', '--quiet']
  const child = spawn(process.execPath, args, { signal, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output] = await Promise.all([child.stdout && text(child.stdout), once(child, 'close')])
  if (!output.includes('{')) throw new CommandError('the copy could not be verified, and was deleted')
  // A module that NODE_OPTIONS preloads may print before the result.
  const { plants, checksum, faults } = JSON.parse(output.slice(output.lastIndexOf('\n{') + 1))
  if (faults.length === 0) return { plants: Number(plants), checksum: String(checksum) }
  throw new CommandError(`the copy was deleted, because the source is damaged: ${faults[0]}`)
}

/** Copies in one transaction: otherwise each write would restart the backup (sqlite.org/c3ref/backup_finish.html). */
async function copyDatabase(from: string, to: string, { progress }: CopyOptions): Promise<void> {
  const source = openReadOnly(from)
  try {
    source.exec('BEGIN; SELECT count(*) FROM meta')
    await backup(source, to, {
      rate: stepPages,
      progress: ({ totalPages: all, remainingPages }) => progress.show(all - remainingPages, all, 'page'),
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SQLITE_ERROR') throw error
    throw new CommandError(`cannot copy ${from} to ${to}: ${(error as Error).message}`)
  } finally {
    source.close()
  }
}
