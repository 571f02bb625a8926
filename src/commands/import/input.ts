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
const byteOrderMark = Buffer.from('\ufeff')

type Chunks = AsyncGenerator<Buffer, undefined>

export class Input {
  readonly #file: FileHandle
  /** The path of a regular file without links; undefined for a pipe. */
  readonly path: string | undefined
  /** The share of the file that was read. */
  share = 0

  private constructor(file: FileHandle, path?: string) {
    this.#file = file
    this.path = path
  }

  /** Opens a file, or stdin as `-`. */
  static async open(path: string, signal: AbortSignal): Promise<Input> {
    const file = path === '-' ? undefined : await open(path)
    const stats = await file?.stat()
    if (file && stats?.isFile()) return new Input(file, realpathSync(path))
    const copy = await openUnnamed()
    try {
      const stream = file?.createReadStream({ autoClose: false }) ?? process.stdin
      await copy.writeFile(addAbortSignal(signal, stream)).catch(refuseCopy)
      return new Input(copy)
    } catch (error) {
      await copy.close()
      throw error
    } finally {
      if (file) await file.close()
      else process.stdin.destroy()
    }
  }

  /** Reads the first bytes of the text. */
  async readHead(): Promise<Buffer> {
    let head = Buffer.alloc(0)
    for await (const chunk of this.read()) {
      head = Buffer.concat([head, chunk])
      if (head.length >= headBytes) break
    }
    return head
  }

  /** Reads all of the text from its beginning: decompressed, and without a byte order mark. */
  async *read(): Chunks {
    const { buffer } = await this.#file.read(Buffer.alloc(4), 0, 4, 0)
    const coding = codings.find(({ magic }) => magic.test(buffer.toString('hex')))
    let isFirst = true
    for await (const chunk of coding ? decode(coding, this.#readBytes()) : this.#readBytes()) {
      yield isFirst && chunk.indexOf(byteOrderMark) === 0 ? chunk.subarray(byteOrderMark.length) : chunk
      isFirst = false
    }
  }

  async *#readBytes(): Chunks {
    const { size } = await this.#file.stat()
    for (let at = 0; ; ) {
      const { bytesRead, buffer } = await this.#file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, at)
      if (bytesRead === 0) return
      at += bytesRead
      this.share = at / Math.max(at, size)
      yield buffer.subarray(0, bytesRead)
    }
  }

  close(): Promise<void> {
    return this.#file.close()
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
  if (error.syscall !== 'open' && error.syscall !== 'write') throw error
  throw new CommandError(`cannot write a temporary file in ${tmpdir()} (TMPDIR): ${error.message}`)
}

/** The hash of the beginning of an input, by which it is recognized. */
export class Prefix {
  readonly #hash = createHash('sha256')
  #hashed = 0
  #rest: Buffer = Buffer.alloc(0)

  /** Passes on what is read. The last bytes are hashed later: a record may end there that is known to end only behind. */
  async *follow(chunks: Chunks): Chunks {
    for await (const chunk of chunks) {
      this.hash(this.#hashed + this.#rest.length - 2 * maxRecordBytes)
      this.#rest = Buffer.concat([this.#rest, chunk])
      yield chunk
    }
  }

  /** Hashes the first bytes, never fewer than before; resolves to the SHA-256 (hex). */
  hash(bytes: number): string {
    const part = this.#rest.subarray(0, Math.max(0, bytes - this.#hashed))
    this.#hash.update(part)
    this.#hashed += part.length
    this.#rest = this.#rest.subarray(part.length)
    return this.#hash.copy().digest('hex')
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
        if (unread > 0) {
          chunk = chunk.subarray(-unread)
          return
        }
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
