// restore: copies a backup to a path without a database.
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { CommandError, count, doLongWork, printResult } from '../cli/console.ts'
import { addWorkOptions, type WorkOptions } from '../cli/options.ts'
import { makeDirectory } from '../store/sqlite/path.ts'
import { advice, copyVerified, findFile } from './backup.ts'

const help = `
The backup is restored to the path of DATABASE_URL. No database, -wal or -shm may exist there. The database appears once it is
complete, verified, and on stable storage; a killed restore may leave a file that ends in .partial: delete it. If root runs
restore, the database belongs to the owner of the directory. The backup lacks later revocations: repeat them.`

export function define(command: Command): void {
  command.argument('<file>', 'a backup; - is stdin')
  addWorkOptions(command).addHelpText('after', help).action(runRestore)
}

async function runRestore(file: string, options: WorkOptions): Promise<void> {
  const path = findFile(options, 'restore is for SQLite: use pg_restore or psql')
  // SQLite would replay the -wal of an earlier database into the restored one.
  const found = ['', '-wal', '-shm', '-journal'].map((ending) => path + ending).find(existsSync)
  if (found !== undefined)
    throw new CommandError(`${found} exists: stop the service, then move away all files of this database`)
  const report = await doLongWork({ quiet: options.quiet, advice }, (progress, signal) => {
    makeDirectory(dirname(path))
    return copyVerified(file === '-' ? process.stdin : resolve(file), path, { progress, signal })
  })
  const text = `restored ${count(report.plants, 'plant')} to ${path}; verified, SHA-256 ${report.checksum}`
  await printResult({ file: path, ...report }, text, options.json)
}
