// Opens the input of an import: a file or stdin, plain or compressed. Its beginning is read first.
import { isUtf8 } from 'node:buffer'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { FileRefused } from '../../runtime/new-file.ts'
import { decompress, prepend, readHead } from './decompress.ts'
import { InputError } from './input-error.ts'

const chunkBytes = 64 * 1024
const headBytes = 1024
const byteOrderMark = Buffer.from('\ufeff')
/** The longest character of UTF-8, in bytes. */
const longest = 4
/** Stands for invalid bytes. No UTF-8 spells it: `isWellFormed` tells a text that has one. */
const loneSurrogate = '\udfff'

export type Input = {
  /** The first bytes, decompressed, without a byte order mark. */
  head: Buffer
  /** The whole input, as text. */
  texts: AsyncIterable<string>
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
    const bytes = decompress(stream[Symbol.asyncIterator]())
    const start = await readHead(bytes, headBytes)
    if (/^(fffe|feff)/.test(start.toString('hex', 0, 2))) throw new InputError('is UTF-16, expected UTF-8', 1)
    const head = start.indexOf(byteOrderMark) === 0 ? start.subarray(byteOrderMark.length) : start
    const readShare = () => size && stream.bytesRead / size
    const texts = decodeUtf8(prepend(head, bytes))
    return { head, texts, readShare, close: () => stream.destroy() }
  } catch (error) {
    stream.destroy()
    throw explain(path, error)
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

/**
 * Decodes UTF-8; yields the texts of chunks, each with whole characters. Node would silently replace invalid bytes by
 * U+FFFD, which may be in a text as well.
 */
async function* decodeUtf8(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    // Bytes that continue a character are 10xxxxxx; the last character may be incomplete.
    const last = bytes.findLastIndex((byte) => byte >> 6 !== 0b10)
    const isOpen = (bytes[last] ?? 0) >= 0x80 && bytes.length - last < longest
    const end = isOpen ? last : bytes.length
    rest = bytes.subarray(end)
    yield decode(bytes.subarray(0, end))
  }
  yield decode(rest)
}

function decode(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString()
  return bytes
    .toString('latin1')
    .split('\xef\xbf\xbd')
    .map((part) => Buffer.from(part, 'latin1').toString().replaceAll('\ufffd', loneSurrogate))
    .join('\ufffd')
}
