// backup: copies a SQLite database while the service runs on it.
import type { Command } from 'commander'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { copyVerified } from '../../maintenance/backup/back-up.ts'
import { count } from '../../runtime/count.ts'
import { engineOf } from '../../store/engines.ts'
import { existingPath } from '../../store/sqlite/files/path.ts'
import { StoreRefused } from '../../store/store.ts'
import { doLongWork } from '../console/long-work.ts'
import { printResult } from '../console/output.ts'
import { addWorkOptions, type WorkOptions } from '../setting-options.ts'

type Options = WorkOptions & { force?: true }

const help = `
The service may run meanwhile. FILE gets its name when the copy is complete, verified, and on stable storage; a backup that
is killed may leave a file that ends in .partial, which may be deleted. FILE holds everything, the hashes of tokens
included, so only you can read it. plant-store restore restores it.

A PostgreSQL database is backed up with PostgreSQL's own tools, such as pg_dump.`

export function define(command: Command): void {
  command.argument('<file>', 'the file to create').option('--force', 'replace FILE if it exists')
  addWorkOptions(command)
    .addHelpText('after', help)
    .action(async (file: string, options: Options) => {
      const url = loadSqliteUrl(command, options, 'use pg_dump or pg_basebackup; docs/backup.md says how')
      const report = await runCopy(existingPath(url), file, options)
      const text = `backed up ${count(report.plants, 'plant')} to ${file}; verified, SHA-256 ${report.checksum}`
      printResult({ file, ...report }, text, options.json)
    })
}

/** Resolves the database of a command. Throws StoreRefused when it is no file; `instead` says what to use. */
export function loadSqliteUrl(command: Command, { databaseUrl }: WorkOptions, instead: string): string {
  const url = loadDatabaseUrl(databaseUrl)
  const { name, path } = engineOf(url)
  if (path) return url
  throw new StoreRefused(`${command.name()} is for SQLite, and DATABASE_URL is for ${name}: ${instead}`)
}

/** Copies one database file to another, verifies the copy, and shows the progress. */
export function runCopy(from: string, to: string, { quiet, force: replace }: Options) {
  const describe = () => 'interrupted: nothing was written. Run it again'
  return doLongWork({ quiet, describe }, (progress, signal) =>
    copyVerified(from, to, { replace, signal, onProgress: progress.show }),
  )
}
