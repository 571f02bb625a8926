// restore: copies a backup to a path where there is no database yet.
import { existsSync, rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { copyFromStream, copyVerified } from '../../maintenance/backup/back-up.ts'
import { count } from '../../runtime/count.ts'
import { StoreRefused } from '../../store/errors.ts'
import { sqlitePath } from '../../store/sqlite/files/path.ts'
import { makeDirectory } from '../../store/sqlite/sqlite-engine.ts'
import { printResult } from '../console/output.ts'
import { addWorkOptions, type WorkOptions } from '../setting-options.ts'
import { loadSqliteUrl, runCopy } from './backup.ts'

const help = `
The backup is restored to the path of DATABASE_URL, where there must be no database, nor a -wal or -shm file of one. It
appears there when it is complete, verified, and on stable storage. Run this as the user of the
service; as root it gives the database to the owner of the directory. With - the backup is read from stdin.

Tokens are restored as they were: revoke again those that were revoked since the backup. Lists with plants that the backup
lacks get other ETags as soon as a plant is added.`

export function define(command: Command): void {
  addWorkOptions(command.argument('<file>', 'a backup; - is stdin'))
    .addHelpText('after', help)
    .action(async (file: string, options: WorkOptions) => {
      const url = loadSqliteUrl(command, options, 'use pg_restore or psql; docs/backup.md says how')
      const path = sqlitePath(url)
      requireNothing(path)
      const report = await inDirectory(dirname(path), () =>
        runCopy(options, (how) =>
          file === '-' ? copyFromStream(process.stdin, path, how) : copyVerified(file, path, how),
        ),
      )
      const text = `restored ${count(report.plants, 'plant')} to ${path}; verified, SHA-256 ${report.checksum}`
      printResult({ file: path, ...report }, text, options.json)
    })
}

/** Refuses leftovers, too: SQLite would replay the `-wal` of an earlier database into the restored one. */
function requireNothing(path: string): void {
  const found = ['', '-wal', '-shm', '-journal'].map((ending) => path + ending).find(existsSync)
  if (found !== undefined)
    throw new StoreRefused(`${found} exists: stop the service and move it away, with the files beside it`)
}

/** Makes a directory for some work, and removes what was made of it if the work fails. */
async function inDirectory<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const made = makeDirectory(directory)
  try {
    return await work()
  } catch (error) {
    for (const one of made) rmdirSync(one)
    throw error
  }
}
