// restore: copies a backup to a path where there is no database yet.
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Command } from 'commander'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { count } from '../../runtime/count.ts'
import { sqlitePath } from '../../store/sqlite/files/path.ts'
import { makeDirectory } from '../../store/sqlite/sqlite-engine.ts'
import { StoreRefused } from '../../store/store.ts'
import { addWorkOptions } from '../setting-options.ts'
import { printSummary, requireSqlite, runCopy } from './backup.ts'

type Options = { databaseUrl?: string; json?: true; quiet?: true }

const help = `
DATABASE_URL says where it goes: to a path where there is no database, nor a -wal or -shm file of one. It appears there when
it is complete, on stable storage and verified. Run it as the user that the service runs as.

Tokens are restored as they were: revoke those again that were revoked since. Lists that had plants which the backup lacks
get other ETags as soon as a plant is added.`

export function makeCommand(): Command {
  return addWorkOptions(new Command('restore').argument('<file>', 'what backup has made'))
    .addHelpText('after', help)
    .action(async (file: string, options: Options, command: Command) => {
      const databaseUrl = loadDatabaseUrl(options.databaseUrl)
      requireSqlite(command, databaseUrl, 'use pg_restore or psql; docs/backup.md says how')
      const path = sqlitePath(databaseUrl)
      requireNothing(path)
      makeDirectory(dirname(path))
      const report = await runCopy(file, path, { quiet: options.quiet })
      printSummary(`restored ${count(report.plants, 'plant')} to ${path}`, { file: path, ...report }, options)
    })
}

/** Refuses leftovers, too: SQLite would replay the `-wal` of an earlier database into the restored one. */
function requireNothing(path: string): void {
  const found = ['', '-wal', '-shm', '-journal'].map((ending) => path + ending).find(existsSync)
  if (found !== undefined)
    throw new StoreRefused(`${found} exists: stop the service and move it away, with what else is beside it`)
}
