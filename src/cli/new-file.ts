// Creates files atomically: writes a temporary file in the same directory, syncs it, and renames it. A crash leaves at
// most the temporary file, with the ending .partial.
import { randomUUID } from 'node:crypto'
import { createWriteStream, existsSync, linkSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { giveToOwner, isSameFile, resolveLinks, syncDirectoryOf, syncFile } from '../file-system.ts'
import { CommandError } from './console.ts'

/** `source`: the database to read, which must not be replaced; `signal`: aborting it removes the temporary file. */
export type FileOptions = { replace?: boolean | undefined; source?: string | undefined; signal: AbortSignal }

/**
 * Creates the file at `path`. `write` receives a temporary path, where it must create and close the file. Rejects with
 * CommandError, for example if the path exists without `replace`, or with an error of `write`.
 */
export async function writeNewFile<T>(path: string, options: FileOptions, write: (to: string) => Promise<T>) {
  // Refuses a dangling link, which another user may have created.
  const target = resolveLinks(path, 0)
  checkTarget(target, options)
  const temporary = join(dirname(target), `.${randomUUID()}.partial`)
  // Also removes files that SQLite creates next to it.
  const discard = () => {
    for (const ending of ['', '-journal', '-wal', '-shm']) rmSync(temporary + ending, { force: true })
  }
  options.signal.addEventListener('abort', discard, { once: true })
  try {
    // Fails before anything is written if the directory cannot be synced.
    syncDirectoryOf(target)
    const result = await write(temporary)
    giveToOwner(temporary)
    syncFile(temporary)
    // A service may have been started on the target in the meantime.
    checkTarget(target, options)
    if (options.replace) renameSync(temporary, target)
    else publishOnce(temporary, target)
    syncDirectoryOf(target)
    return result
  } catch (error) {
    discard()
    const { message, syscall } = error as NodeJS.ErrnoException
    const text = message.replaceAll(temporary, target)
    if (syscall !== undefined) throw new CommandError(`cannot write ${target}: ${text}`)
    throw text === message ? error : new CommandError(text)
  }
}

/** Pipes the streams in order into a new file, or to stdout if `path` is `-`. */
export async function writeStreams(path: string, options: FileOptions, streams: NodeJS.ReadableStream[]) {
  const { signal } = options
  if (path === '-') return pipeline([...streams, process.stdout], { signal, end: false })
  return writeNewFile(path, options, (temporary) =>
    pipeline([...streams, createWriteStream(temporary, { flags: 'wx' })], { signal }),
  )
}

/** Throws CommandError if the path cannot be the target of a new file. */
export function checkTarget(path: string, { replace, source }: Partial<FileOptions> = {}): void {
  // An empty path, as of an unset variable, names the working directory.
  const found = lstatSync(path || '.', { throwIfNoEntry: false })
  if (found && !found.isFile()) throw new CommandError(`${path || "''"} is not a regular file`)
  if (found && !replace) throw new CommandError(`${path} already exists`)
  if (!existsSync(dirname(path))) throw new CommandError(`cannot write ${path}: its directory does not exist`)
  const isSource = source !== undefined && isSameFile(statSync(source, { throwIfNoEntry: false }), found)
  // SQLite would use the new file.
  const [, database] = /^(.+)-(?:wal|shm|journal)$/i.exec(path) ?? []
  if (isSource || (database && statSync(database, { throwIfNoEntry: false })?.isFile()))
    throw new CommandError(`${path} is a file of the database itself`)
  // SQLite would replay these logs into the new file.
  const log = ['-wal', '-journal'].map((ending) => path + ending).find(existsSync)
  if (log !== undefined) throw new CommandError(`${log} exists: ${path} is a database in use`)
}

/** Links the file, because a rename would replace a file that was created in the meantime. */
function publishOnce(temporary: string, target: string): void {
  try {
    linkSync(temporary, target)
  } catch {
    if (existsSync(target)) throw new CommandError(`${target} already exists`)
    // Some file systems, such as FAT, do not support links.
    renameSync(temporary, target)
  }
  rmSync(temporary, { force: true })
}
