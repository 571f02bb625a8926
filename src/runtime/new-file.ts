// Creates files atomically: written under a temporary name in the same directory, synced, and then given their name. A
// crash leaves at most the temporary file, whose name says what it is.
import { randomUUID } from 'node:crypto'
import { existsSync, lchownSync, linkSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { identify, isSameFile, resolveLinks } from './same-file.ts'
import { syncDirectoryOf, syncFile } from './sync.ts'

/** The file cannot be read or written at its path; the message is one line for the operator. */
export class FileRefused extends Error {}

/** `source`: the database that is read, which is never replaced; `signal`: removes the temporary file on abort. */
export type NewFileOptions = {
  replace?: boolean | undefined
  source?: string | undefined
  signal?: AbortSignal | undefined
}

/**
 * Creates the file at `path` from what `write` writes, and closes, at the temporary path that it is given, which ends
 * in `.partial`. Rejects with FileRefused, also when the path exists already, unless it is a file and `replace` is set;
 * or with an error of `write`.
 */
export async function writeNewFile<T>(
  path: string,
  options: NewFileOptions,
  write: (temporaryPath: string) => Promise<T>,
): Promise<T> {
  const target = resolveLinks(path)
  checkTarget(target, options)
  const temporary = nameTemporary(target)
  // The files of SQLite beside it, too.
  const discard = () => {
    for (const ending of ['', '-journal', '-wal', '-shm']) rmSync(temporary + ending, { force: true })
  }
  options.signal?.addEventListener('abort', discard, { once: true })
  try {
    const result = await write(temporary)
    giveToOwner(temporary)
    syncFile(temporary)
    if (options.replace) renameSync(temporary, target)
    else publishOnce(temporary, target)
    syncDirectoryOf(target)
    return result
  } catch (error) {
    discard()
    throw nameTarget(error as NodeJS.ErrnoException, temporary, target)
  }
}

/** As root, gives a new file to the owner of its directory: a user of systemd may exist only while its service runs. */
export function giveToOwner(path: string): void {
  /* c8 ignore next: coverage is counted as root */
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  // Never what a link leads to, which the owner of the directory may have put there.
  lchownSync(path, uid, gid)
}

/** A name for a temporary file beside another one, or in `directory`. */
export function nameTemporary(path: string, directory = dirname(path)): string {
  return join(directory, `.${basename(path)}.${randomUUID()}.partial`)
}

function checkTarget(path: string, { replace, source }: NewFileOptions): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found && !found.isFile()) throw new FileRefused(`${path} is not a regular file`)
  if (found && !replace) throw alreadyThere(path)
  if (source !== undefined && isSameFile(identify(source), found))
    throw new FileRefused(`${path} is the database itself`)
  // SQLite would replay them into the new file.
  const log = ['-wal', '-journal'].map((ending) => path + ending).find(existsSync)
  if (log !== undefined) throw new FileRefused(`${log} exists: ${path} is a database in use`)
}

/** Links instead of renaming, which would replace a file created in the meantime. */
function publishOnce(temporary: string, target: string): void {
  try {
    linkSync(temporary, target)
  } catch {
    if (lstatSync(target, { throwIfNoEntry: false })) throw alreadyThere(target)
    /* c8 ignore next 2: a file system without links, such as FAT, which only root can mount */
    renameSync(temporary, target)
  }
  rmSync(temporary, { force: true })
}

/** Names the target in an error about the temporary file. */
function nameTarget(error: NodeJS.ErrnoException, temporary: string, target: string): Error {
  const text = error.message.replaceAll(temporary, target)
  if (error.syscall !== undefined) return new FileRefused(`cannot write ${target}: ${text}`)
  return text === error.message ? error : new FileRefused(text)
}

function alreadyThere(path: string): FileRefused {
  return new FileRefused(`${path} already exists`)
}
