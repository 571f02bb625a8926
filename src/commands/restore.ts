// restore: copies a backup to a path where there is no database yet.
import { createWriteStream, existsSync, rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { CommandError, count, printResult } from '../cli/console.ts'
import { writeNewFile } from '../cli/new-file.ts'
import { addWorkOptions, type WorkOptions } from '../cli/options.ts'
import { makeDirectory } from '../store/sqlite/file-system.ts'
import { openReadOnly } from '../store/sqlite/read-only.ts'
import {
  type CopyOptions,
  copyLong,
  copyVerified,
  findFile,
  makeSingle,
  ownMode,
  verifyCopy,
} from './backup.ts'

const help = `
The backup is restored to the path of DATABASE_URL, where there must be no database, nor a -wal or -shm file of one. It
appears there when it is complete, verified, and on stable storage. Run this as the user of the
service; as root it gives the database to the owner of the directory. With - the backup is read from stdin.

Tokens are restored as they were: revoke again those that were revoked since the backup.`

export function define(command: Command): void {
  addWorkOptions(command.argument('<file>', 'a backup; - is stdin'))
    .addHelpText('after', help)
    .action(runRestore)
}

async function runRestore(file: string, options: WorkOptions): Promise<void> {
  const path = findFile(options, 'restore is for SQLite: use pg_restore or psql')
  // SQLite would replay the -wal of an earlier database into the restored one.
  const found = ['', '-wal', '-shm', '-journal'].map((ending) => path + ending).find(existsSync)
  if (found !== undefined)
    throw new CommandError(`${found} exists: stop the service and move it away, with the files beside it`)
  const report = await copyLong(options, (how) => {
    const made = makeDirectory(dirname(path))
    const restoring = file === '-' ? readVerified(path, how) : copyVerified(file, path, how)
    return restoring.catch((error) => {
      for (const directory of made) rmdirSync(directory)
      throw error
    })
  })
  const text = `restored ${count(report.plants, 'plant')} to ${path}; verified, SHA-256 ${report.checksum}`
  await printResult({ file: path, ...report }, text, options.json)
}

/** Writes the store that comes from stdin to the path `to`, like `copyVerified`. */
function readVerified(to: string, options: CopyOptions) {
  return writeNewFile(to, options, async (path) => {
    await pipeline(process.stdin, createWriteStream(path, { flags: 'wx', mode: ownMode }), {
      signal: options.signal,
    })
    try {
      openReadOnly(path).close()
      makeSingle(path)
    } catch (error) {
      throw new CommandError((error as Error).message.replaceAll(path, 'stdin'))
    }
    return verifyCopy(path, options)
  })
}
