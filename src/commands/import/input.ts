// Opens the input of an import, so that it can be read twice: a file, or a pipe that is copied into an unnamed file first.
import { createHash, randomUUID } from 'node:crypto'
import { realpathSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { CommandError } from '../../cli/console.ts'
import { InputError, maxRecordBytes } from './records.ts'

const chunkBytes = 128 * 1024
const headBytes = 64 * 1024
/** Bytes whose hash is not computed yet: a record may end in them that is known to end only by what follows. */
const keptBytes = 2 * maxRecordBytes
const byteOrderMark = Buffer.from('\ufeff')

type Chunks = AsyncGenerator<Buffer, undefined>

export class Input {
  readonly #file: FileHandle
  /** The path of a regular file without links; undefined for a pipe. */
  readonly path: string | undefined
  #read = 0
  #size = 0

  private constructor(file: FileHandle, path?: string) {
    this.#file = file
    this.path = path
  }

  /** Opens a file, or stdin as `-`. Throws CommandError if it cannot be read or copied. */
  static async open(path: string, signal: AbortSignal): Promise<Input> {
    const file = path === '-' ? undefined : await open(path).catch((error) => refuseInput(path, error))
    const stats = await file?.stat()
    if (file && stats?.isFile()) return new Input(file, realpathSync(path))
    try {
      if (stats?.isDirectory()) throw new CommandError(`${path}: is a directory`)
      const stream = file?.createReadStream({ autoClose: false }) ?? process.stdin
      const copy = await openUnnamed()
      await copy.writeFile(addAbortSignal(signal, stream)).catch(refuseCopy)
      return new Input(copy)
    } finally {
      if (file) await file.close()
      else process.stdin.destroy()
    }
  }

  /** The share of the file that was read by the last reading. */
  get share(): number {
    return this.#size === 0 ? 1 : Math.min(1, this.#read / this.#size)
  }

  /** Reads it from its beginning: the first bytes, and all of them, decompressed and without a byte order mark. */
  async read(): Promise<{ head: Buffer; chunks: Chunks }> {
    this.#size = (await this.#file.stat()).size
    const bytes = this.#readBytes()
    const start = await readHead(bytes, 4)
    const coding = codings.find(({ magic }) => magic.test(start.toString('hex', 0, 4)))
    const text = coding ? decode(coding, prepend(start, bytes)) : prepend(start, bytes)
    const begun = await readHead(text, headBytes)
    const head = begun.indexOf(byteOrderMark) === 0 ? begun.subarray(byteOrderMark.length) : begun
    return { head, chunks: prepend(head, text) }
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async *#readBytes(): Chunks {
    for (this.#read = 0; ; ) {
      const { bytesRead, buffer } = await this.#file.read(
        Buffer.allocUnsafe(chunkBytes),
        0,
        chunkBytes,
        this.#read,
      )
      if (bytesRead === 0) return
      this.#read += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }
}

/** Creates a file without a name, which is gone when it is closed, however the process ends. */
export async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `plant-store-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600).catch(refuseCopy)
  rmSync(path)
  return file
}

function refuseCopy(error: NodeJS.ErrnoException): never {
  if (error.name === 'AbortError' || error.syscall === 'read') throw error
  throw new CommandError(`cannot write a temporary file in ${tmpdir()} (TMPDIR): ${error.message}`)
}

/** Throws CommandError for the error of a system call. */
export function refuseInput(path: string, error: Error): never {
  throw new CommandError(`cannot read ${nameOf(path)}: ${error.message}`)
}

/** Names an input in messages. */
export function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path
}

/** The hash of the beginning of an input, by which it is recognized. */
export class Prefix {
  readonly #hash = createHash('sha256')
  #hashed = 0
  #rest: Buffer = Buffer.alloc(0)

  /** Passes on what is read. */
  async *follow(chunks: Chunks): Chunks {
    for await (const chunk of chunks) {
      this.#advance(this.#hashed + this.#rest.length - keptBytes)
      this.#rest = Buffer.concat([this.#rest, chunk])
      yield chunk
    }
  }

  /** Computes the SHA-256 (hex) of the first bytes, never of fewer than before. */
  hash(bytes: number): string {
    this.#advance(bytes)
    return this.#hash.copy().digest('hex')
  }

  #advance(bytes: number): void {
    const part = this.#rest.subarray(0, Math.max(0, bytes - this.#hashed))
    this.#hash.update(part)
    this.#hashed += part.length
    this.#rest = this.#rest.subarray(part.length)
  }
}

/** A write is called back once the decoder has consumed it, and only then the next is made. */
const options = { chunkSize: chunkBytes, writableHighWaterMark: 1 }
/** `magic`: of the first four bytes; zstd may begin with a frame to be skipped. `padding`: may follow (gzip(1)). */
const codings = [
  { name: 'gzip', magic: /^1f8b/, padding: 0, open: () => createGunzip(options) },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: () => createZstdDecompress(options) },
]

/** Decodes members or frames in a row. Node's decoder of zstd stops silently where a frame ends. */
async function* decode({ name, padding, open }: (typeof codings)[number], chunks: Chunks): Chunks {
  let chunk: Buffer | undefined = (await chunks.next()).value
  while (chunk) {
    const decoder = open()
    const feed = async function* () {
      for (let fed = 0; chunk; chunk = (await chunks.next()).value) {
        fed += chunk.length
        yield chunk
        const unread = fed - decoder.bytesWritten
        if (unread === 0) continue
        chunk = chunk.subarray(-unread)
        return
      }
    }
    const fed = pipeline(feed, decoder)
    fed.catch(() => {})
    try {
      yield* decoder
      await fed
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
      throw /^(Z_|ZSTD_)/.test(`${code}`) ? new InputError(`the ${name} data is damaged: ${message}`) : error
    }
    while (chunk?.every((byte) => byte === padding)) chunk = (await chunks.next()).value
  }
}

/** Reads chunks until they have so many bytes, or end. */
async function readHead(chunks: Chunks, bytes: number): Promise<Buffer> {
  const head: Buffer[] = []
  for (let length = 0; length < bytes; ) {
    const { done, value } = await chunks.next()
    if (done) break
    head.push(value)
    length += value.length
  }
  return Buffer.concat(head)
}

async function* prepend(head: Buffer, rest: Chunks): Chunks {
  yield head
  yield* rest
}
