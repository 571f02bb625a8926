// backup: copies a SQLite database while the service runs on it.
import type { Command } from 'commander'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { type BackupOptions, copyToStream, copyVerified } from '../../maintenance/backup/back-up.ts'
import { count } from '../../runtime/count.ts'
import { engineOf } from '../../store/engines.ts'
import { StoreRefused } from '../../store/errors.ts'
import { existingPath } from '../../store/sqlite/files/path.ts'
import { doLongWork } from '../console/long-work.ts'
import { openOutput } from '../console/output.ts'
import { addWorkOptions, type WorkOptions } from '../setting-options.ts'

type Options = WorkOptions & { force?: true }

const help = `
The service may run meanwhile. FILE gets its name when the copy is complete, verified, and on stable storage; a backup that
is killed may leave a file that ends in .partial, which may be deleted. FILE holds everything, the hashes of tokens
included, so only you can read it. plant-store restore restores it. With - the backup is written to stdout; until it is
verified, it is in a file beside the database, or in TMPDIR.

A PostgreSQL database is backed up with PostgreSQL's own tools, such as pg_dump.`

export function define(command: Command): void {
  command.argument('<file>', 'the file to create; - is stdout').option('--force', 'replace FILE if it exists')
  addWorkOptions(command)
    .addHelpText('after', help)
    .action(async (file: string, options: Options) => {
      const url = loadSqliteUrl(command, options, 'use pg_dump or pg_basebackup; docs/backup.md says how')
      const from = existingPath(url)
      const output = openOutput(file, options)
      const report = await runCopy(output, (how) =>
        output.isStdout
          ? copyToStream(from, process.stdout, how)
          : copyVerified(from, file, { ...how, replace: options.force }),
      )
      const text = `backed up ${count(report.plants, 'plant')}${output.isStdout ? '' : ` to ${file}`}; verified, SHA-256 ${report.checksum}`
      output.report({ file, ...report }, text)
    })
}

/** Resolves the database of a command. Throws StoreRefused when it is no file; `instead` says what to use. */
export function loadSqliteUrl(command: Command, { databaseUrl }: WorkOptions, instead: string): string {
  const url = loadDatabaseUrl(databaseUrl)
  const { name, path } = engineOf(url)
  if (path) return url
  throw new StoreRefused(`${command.name()} is for SQLite, and DATABASE_URL is for ${name}: ${instead}`)
}

/** Copies a database, and shows the progress. */
export function runCopy<T>(
  { quiet }: { quiet?: boolean | undefined },
  copy: (options: BackupOptions) => Promise<T>,
): Promise<T> {
  const describe = () => 'interrupted: the copy is incomplete. Run it again'
  return doLongWork({ quiet, describe }, (progress, signal) => copy({ signal, onProgress: progress.show }))
}
