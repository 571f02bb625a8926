// A file that comes into being whole or not at all: written under a temporary name beside its place, synced, and only
// then given its name. Whatever ends the process before leaves at most the temporary file, which says what it is.
import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, lstatSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { identify, isSameFile, resolveLinks } from './same-file.ts'
import { syncDirectoryOf, syncFile } from './sync.ts'

/** The file cannot be written there; the message is one line for the operator. */
export class FileRefused extends Error {}

/** `source`: the database that is read, which is never replaced; `signal`: what was written goes when it aborts. */
export type NewFileOptions = {
  replace?: boolean | undefined
  source?: string | undefined
  signal?: AbortSignal | undefined
}

export class NewFile {
  readonly path: string
  /** Ends in `.partial`; may be deleted when no process is at work on it. */
  readonly temporaryPath: string
  readonly #replace: boolean

  /** Throws FileRefused when there is something at the path already, unless it is a file that may be replaced. */
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
    // SQLite would play them into whatever gets the name.
    const log = ['-wal', '-journal'].map((ending) => this.path + ending).find(existsSync)
    if (log !== undefined) throw new FileRefused(`${log} exists: ${this.path} is a database in use`)
  }

  /** Gives the temporary file, written and closed, its name. Throws FileRefused, or what the file system says. */
  publish(): void {
    syncFile(this.temporaryPath)
    if (this.#replace) renameSync(this.temporaryPath, this.path)
    else this.#publishOnce()
    syncDirectoryOf(this.path)
  }

  /** Unlike a rename, a link never takes the place of a file that was made in the meantime. */
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

  /** What went wrong with it, by the name that it was to have. */
  explain(error: unknown): Error {
    const { message, syscall } = error as NodeJS.ErrnoException
    const text = message.replaceAll(this.temporaryPath, this.path)
    if (syscall !== undefined) return new FileRefused(`cannot write ${this.path}: ${text}`)
    return text === message ? (error as Error) : new FileRefused(text)
  }

  /** Removes what was written so far, and what SQLite may have put beside it. */
  discard(): void {
    for (const ending of ['', '-journal', '-wal', '-shm'])
      rmSync(this.temporaryPath + ending, { force: true })
  }
}

/** Throws FileRefused when a path names the database that is read. */
export function refuseSource(path: string, source: string): void {
  if (isSameFile(identify(source), identify(path)))
    throw new FileRefused(`${resolveLinks(path)} is the database itself`)
}

function alreadyThere(path: string): FileRefused {
  return new FileRefused(`${path} already exists`)
}
