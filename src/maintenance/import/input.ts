// Opens the input of an import: a file or stdin, plain or compressed. Its beginning is read first.
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { FileRefused } from '../../runtime/new-file.ts'
import { decompress, prepend, readHead } from './decompress.ts'
import { InputError } from './input-error.ts'
import { maxRecordBytes } from './record.ts'

const chunkBytes = 64 * 1024
/** An input that is not a file is known again by so much of it. */
export const headBytes = 64 * 1024
const byteOrderMark = Buffer.from('\ufeff')

/** Of the decompressed text, without a byte order mark. */
export type Input = {
  /** The first bytes. */
  head: Buffer
  /** All bytes. */
  bytes: AsyncIterable<Buffer>
  /** True when the head is all. */
  isWhole: boolean
  /** True for a regular file, which can be read again. */
  isFile: boolean
  isCompressed: boolean
  /** Share of the file that was read; undefined for a pipe. */
  readShare(): number | undefined
  close(): void
}

/**
 * Opens an input. `path`: `-` is stdin; `signal` ends the reading. Throws InputError or FileRefused when it cannot be
 * read.
 */
export async function openInput(path: string, signal: AbortSignal): Promise<Input> {
  const { stream, size } = await openStream(path)
  addAbortSignal(signal, stream)
  try {
    const { isCompressed, bytes } = await decompress(stream[Symbol.asyncIterator]())
    const start = await readHead(bytes, headBytes + byteOrderMark.length)
    if (/^(fffe|feff)/.test(start.toString('hex', 0, 2))) throw new InputError('is UTF-16, expected UTF-8', 1)
    const begun = start.indexOf(byteOrderMark) === 0 ? start.subarray(byteOrderMark.length) : start
    return {
      head: begun.subarray(0, headBytes),
      bytes: prepend(begun, bytes),
      isWhole: begun.length <= headBytes,
      isFile: size !== undefined,
      isCompressed,
      readShare: () => size && stream.bytesRead / size,
      close: () => stream.destroy(),
    }
  } catch (error) {
    stream.destroy()
    throw explain(path, error)
  }
}

/**
 * Reads a file to its end, so that one that is damaged is refused before anything is added. Resolves to its size, and
 * to the hashes (SHA-256, hex) of its first bytes, as many as in `ends`.
 */
export async function readThrough(path: string, ends: number[], signal: AbortSignal) {
  const left = [...new Set(ends)].sort((a, b) => a - b)
  const hashes = new Map<number, string>()
  const beginning = new Beginning()
  const input = await openInput(path, signal)
  try {
    for await (const chunk of input.bytes) {
      beginning.add(chunk)
      for (; left[0] !== undefined && left[0] <= beginning.bytes; left.shift())
        hashes.set(left[0], beginning.hash(left[0]))
    }
    return { size: beginning.bytes, hashes }
  } finally {
    input.close()
  }
}

/** Copies an input that can be read only once into a new file; returns false for a regular file. */
export async function keepCopy(path: string, copy: string, signal: AbortSignal): Promise<boolean> {
  const { stream, size } = await openStream(path)
  if (size !== undefined) {
    stream.destroy()
    return false
  }
  const file = createWriteStream(copy, { flags: 'wx', mode: 0o600 })
  /* c8 ignore next 5: a full disk, for a process that can write no coverage either: test/cli/import-broken.test.ts */
  await pipeline(stream, file, { signal }).catch((error) => {
    throw error.syscall === 'write'
      ? new FileRefused(`cannot write ${copy} (TMPDIR): ${error.message}`)
      : error
  })
  return true
}

type Stream = Readable & { bytesRead: number }

/** Opens a file or stdin. `size`: of a regular file. Throws InputError or FileRefused. */
async function openStream(path: string): Promise<{ stream: Stream; size?: number }> {
  if (path === '-') return { stream: process.stdin }
  try {
    const file = await open(path)
    const stats = await file.stat()
    const stream = file.createReadStream({ highWaterMark: chunkBytes })
    if (!stats.isDirectory()) return { stream, ...(stats.isFile() && { size: stats.size }) }
    stream.destroy()
    throw new FileRefused(`${nameOf(path)}: is a directory`)
  } catch (error) {
    throw explain(path, error)
  }
}

/** Wraps errors of system calls; interrupts and faults of the input are passed on. */
function explain(path: string, error: unknown): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : new FileRefused(`cannot read ${nameOf(path)}: ${message}`)
}

/** Names an input in messages. */
export function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path
}

/** Chunks are kept for a record that may end in them. */
const keptBytes = 2 * maxRecordBytes

/** The hash of the beginning of an input, by which it is known again: of all that was consumed. */
export class Beginning {
  readonly #hash = createHash('sha256')
  #chunks: Buffer[] = []
  #keptBytes = 0
  #latest = { bytes: 0, hash: '' }
  /** Bytes that were hashed. */
  #hashed = 0

  get bytes(): number {
    return this.#hashed + this.#keptBytes
  }

  add(chunk: Buffer): void {
    while (this.#keptBytes > keptBytes) this.#feed(this.#chunks[0]?.length as number)
    this.#chunks.push(chunk)
    this.#keptBytes += chunk.length
  }

  /** The SHA-256 (hex) of the first bytes. `bytes`: never fewer than before, and not far from the end of the input. */
  hash(bytes: number): string {
    if (bytes === this.#latest.bytes) return this.#latest.hash
    while (this.#hashed < bytes) this.#feed(bytes - this.#hashed)
    this.#latest = { bytes, hash: this.#hash.copy().digest('hex') }
    return this.#latest.hash
  }

  #feed(most: number): void {
    const chunk = this.#chunks.shift() as Buffer
    const part = chunk.subarray(0, most)
    if (part.length < chunk.length) this.#chunks.unshift(chunk.subarray(part.length))
    this.#hash.update(part)
    this.#hashed += part.length
    this.#keptBytes -= part.length
  }
}
