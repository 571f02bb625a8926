// Creates files atomically: written under a temporary name in the same directory, synced, and then given their name. A
// crash leaves at most the temporary file, whose name says what it is.
import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, lstatSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { identify, isSameFile, resolveLinks } from './same-file.ts'
import { syncDirectoryOf, syncFile } from './sync.ts'

/** The file cannot be written at its path; the message is one line for the operator. */
export class FileRefused extends Error {}

/** `source`: the database that is read, which is never replaced; `signal`: removes the temporary file on abort. */
export type NewFileOptions = {
  replace?: boolean | undefined
  source?: string | undefined
  signal?: AbortSignal | undefined
}

export class NewFile {
  readonly path: string
  /** Ends in `.partial`; may be deleted when no process is writing it. */
  readonly temporaryPath: string
  readonly #replace: boolean

  /** Throws FileRefused when the path exists already, unless it is a file and `replace` is set. */
  constructor(path: string, { replace = false, source, signal }: NewFileOptions = {}) {
    this.path = resolveLinks(path)
    this.#replace = replace
    this.#check(source)
    this.temporaryPath = join(dirname(this.path), `.${basename(this.path)}.${randomUUID()}.partial`)
    signal?.addEventListener('abort', () => this.discard(), { once: true })
  }

  #check(source: string | undefined): void {
    const found = lstatSync(this.path, { throwIfNoEntry: false })
    if (found && !found.isFile()) throw new FileRefused(`${this.path} is not a regular file`)
    if (found && !this.#replace) throw alreadyThere(this.path)
    if (source !== undefined) refuseSource(this.path, source)
    // SQLite would replay them into the new file.
    const log = ['-wal', '-journal'].map((ending) => this.path + ending).find(existsSync)
    if (log !== undefined) throw new FileRefused(`${log} exists: ${this.path} is a database in use`)
  }

  /** Gives the temporary file, which is closed, its name. Throws FileRefused, or errors of the file system. */
  publish(): void {
    syncFile(this.temporaryPath)
    if (this.#replace) renameSync(this.temporaryPath, this.path)
    else this.#publishOnce()
    syncDirectoryOf(this.path)
  }

  /** Links instead of renaming, which would replace a file created in the meantime. */
  #publishOnce(): void {
    try {
      linkSync(this.temporaryPath, this.path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyThere(this.path)
      /* c8 ignore next 3: a file system without links, such as FAT, which only root can mount */
      if (existsSync(this.path)) throw error
      renameSync(this.temporaryPath, this.path)
    }
    rmSync(this.temporaryPath, { force: true })
  }

  /** Names the final path in an error about the temporary file. */
  explain(error: unknown): Error {
    const { message, syscall } = error as NodeJS.ErrnoException
    const text = message.replaceAll(this.temporaryPath, this.path)
    if (syscall !== undefined) return new FileRefused(`cannot write ${this.path}: ${text}`)
    return text === message ? (error as Error) : new FileRefused(text)
  }

  /** Removes the temporary file, and the files of SQLite beside it. */
  discard(): void {
    for (const ending of ['', '-journal', '-wal', '-shm'])
      rmSync(this.temporaryPath + ending, { force: true })
  }
}

/** Throws FileRefused when the path is that of the database that is read. */
export function refuseSource(path: string, source: string): void {
  if (isSameFile(identify(source), identify(path)))
    throw new FileRefused(`${resolveLinks(path)} is the database itself`)
}

function alreadyThere(path: string): FileRefused {
  return new FileRefused(`${path} already exists`)
}
