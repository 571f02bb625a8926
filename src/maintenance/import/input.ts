// Opens the input of an import: a file, which is read as often as needed, or a pipe. It may be compressed.
import { createHash, randomUUID } from 'node:crypto'
import { realpathSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { FileRefused } from '../../runtime/new-file.ts'
import { type Chunks, decompress, prepend, readHead } from './decompress.ts'
import { maxRecordBytes } from './record.ts'

/** A pipe is known again by so much of its beginning. */
const headBytes = 64 * 1024
const byteOrderMark = Buffer.from('\ufeff')

export type Reading = Awaited<ReturnType<Input['read']>>

type Options = { path: string; signal: AbortSignal }

export class Input {
  readonly #options: Options
  /** Undefined for stdin. */
  #file: FileHandle | undefined
  /** Of a regular file. */
  #size: number | undefined
  /** The path of a regular file, without links. */
  path: string | undefined

  /** `path`: `-` is stdin; `signal` ends the reading. */
  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Opens it. `isCopied`: a pipe is copied into a file without a name first, so that it can be read twice. Throws
   * FileRefused when it cannot be read.
   */
  async open(isCopied: boolean): Promise<void> {
    const { path } = this.#options
    if (path !== '-') this.#file = await open(path).catch((error) => refuseInput(path, error))
    const stats = await this.#file?.stat()
    if (stats?.isDirectory()) throw new FileRefused(`${path}: is a directory`)
    if (stats?.isFile()) {
      this.#size = stats.size
      this.path = realpathSync(path)
    } else if (isCopied) await this.#keepCopy()
  }

  /** True when it can be read again. */
  get isFile(): boolean {
    return this.#size !== undefined
  }

  /**
   * Reads the decompressed text, without a byte order mark. `head`: its first bytes; `isWhole`: these are all;
   * `readShare`: share of the file that was read, undefined for a pipe. Throws InputError when it is damaged there.
   */
  async read() {
    const size = this.#size
    const stream = this.#openStream()
    const { isCompressed, bytes } = await decompress(stream[Symbol.asyncIterator]())
    const start = await readHead(bytes, headBytes + byteOrderMark.length)
    const begun = start.indexOf(byteOrderMark) === 0 ? start.subarray(byteOrderMark.length) : start
    return {
      head: begun.subarray(0, headBytes),
      isWhole: begun.length <= headBytes,
      isCompressed,
      bytes: prepend(begun, bytes),
      readShare: () => size && stream.bytesRead / size,
    }
  }

  /**
   * Reads a file to its end, so that one that is damaged is refused before anything is added. Resolves to its size, and
   * to the hashes (SHA-256, hex) of its first bytes, as many as in `ends`.
   */
  async readThrough(ends: number[]): Promise<{ size: number; hashes: Map<number, string> }> {
    const left = ends.toSorted((a, b) => a - b)
    const hashes = new Map<number, string>()
    const prefix = new Prefix()
    for await (const _ of prefix.follow((await this.read()).bytes))
      for (; left[0] !== undefined && left[0] <= prefix.bytes; left.shift())
        hashes.set(left[0], prefix.hash(left[0]))
    return { size: prefix.bytes, hashes }
  }

  async close(): Promise<void> {
    if (this.#options.path === '-') process.stdin.destroy()
    await this.#file?.close()
  }

  #openStream(): Readable & { bytesRead: number } {
    const start = this.isFile ? { start: 0 } : {}
    const stream = this.#file?.createReadStream({ autoClose: false, ...start }) ?? process.stdin
    // It is not read any more when an import that has ended is aborted.
    return addAbortSignal(this.#options.signal, stream).on('error', () => {})
  }

  async #keepCopy(): Promise<void> {
    const path = join(tmpdir(), `plant-store-${randomUUID()}`)
    const refuseWrite = (error: NodeJS.ErrnoException): never => {
      if (!/open|write/.test(String(error.syscall))) throw error
      throw new FileRefused(`cannot write ${path} (TMPDIR): ${error.message}`)
    }
    const copy = await open(path, 'wx+', 0o600).catch(refuseWrite)
    rmSync(path)
    const [pipe, stream] = [this.#file, this.#openStream()]
    this.#file = copy
    const written = copy.writeFile(stream).catch(refuseWrite)
    await written.finally(() => pipe?.close())
    this.#size = stream.bytesRead
  }
}

/** Throws FileRefused for the error of a system call. */
export function refuseInput(path: string, error: Error): never {
  throw new FileRefused(`cannot read ${nameOf(path)}: ${error.message}`)
}

/** Names an input in messages. */
export function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path
}

/** Bytes before a chunk that are kept: a record may end in them that is known to end only by what follows. */
const keptBytes = 2 * maxRecordBytes

/** The hash of the beginning of an input, by which it is known again: of all that was consumed. */
export class Prefix {
  readonly #hash = createHash('sha256')
  #hashed = 0
  #rest: Buffer = Buffer.alloc(0)

  /** Bytes that were read. */
  get bytes(): number {
    return this.#hashed + this.#rest.length
  }

  /** Passes on what is read. */
  async *follow(chunks: Chunks): AsyncGenerator<Buffer, undefined> {
    for await (const chunk of chunks) {
      this.advance(this.bytes - keptBytes)
      this.#rest = Buffer.concat([this.#rest, chunk])
      yield chunk
    }
  }

  /** Takes note that no record ends before. */
  advance(bytes: number): void {
    const part = this.#rest.subarray(0, Math.max(0, bytes - this.#hashed))
    this.#hash.update(part)
    this.#hashed += part.length
    this.#rest = this.#rest.subarray(part.length)
  }

  /** The SHA-256 (hex) of the first bytes, never fewer than before. */
  hash(bytes: number): string {
    this.advance(bytes)
    return this.#hash.copy().digest('hex')
  }
}
