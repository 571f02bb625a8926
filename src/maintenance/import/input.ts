// Opens the input of an import: a file or stdin, plain or compressed. Its beginning is read first.
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { FileRefused } from '../../runtime/new-file.ts'
import { Beginning } from './beginning.ts'
import { decompress, prepend, readHead } from './decompress.ts'
import { InputError } from './input-error.ts'

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
 * Reads a file to its end if it is compressed, so that a damaged one is refused before anything is added; and the hashes
 * (SHA-256, hex) of its first bytes, as many as in `ends`.
 */
export async function hashBeginnings(
  path: string,
  ends: number[],
  signal: AbortSignal,
): Promise<Map<number, string>> {
  const left = [...new Set(ends)].sort((a, b) => a - b)
  const hashes = new Map<number, string>()
  const beginning = new Beginning()
  const input = await openInput(path, signal)
  try {
    for await (const chunk of input.bytes) {
      if (left.length === 0 && !input.isCompressed) break
      beginning.add(chunk)
      for (let [end] = left; end !== undefined && end <= beginning.bytes; [end] = left) {
        hashes.set(end, beginning.hash(end))
        left.shift()
      }
    }
    return hashes
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
