// Opens the input of an import: a file or stdin, plain or compressed. Its beginning is read first.
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import { decompress } from './decompress.ts'
import { FileError, InputError } from './input-error.ts'

const chunkBytes = 64 * 1024
/** Size of the beginning, by whose records an input is recognized. */
export const headBytes = 64 * 1024
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

export type Input = {
  /** For messages. */
  name: string
  /** The first bytes, decompressed, without a byte order mark. */
  head: Buffer
  /** The whole input, decompressed, without a byte order mark; the first chunk is `head`. */
  chunks: AsyncIterable<Buffer>
  /** Size of the file, as it is stored; undefined for a pipe. */
  size: number | undefined
  /** Number of bytes of the file that were read, as it is stored. */
  bytesRead(): number
  close(): void
}

/**
 * Opens an input. `path`: `-` is stdin; `file`: a copy of the input; `signal` ends the reading. Throws InputError or
 * FileError when it cannot be read.
 */
export async function openInput(path: string, signal: AbortSignal, file = path): Promise<Input> {
  const name = path === '-' ? 'stdin' : path
  const { stream: source, size } = await openStream(file)
  // A pending read of a pipe cannot be cancelled, but waiting for it can.
  const stream = size === undefined ? source.pipe(new PassThrough()) : source
  if (stream !== source) source.on('error', (error) => stream.destroy(error))
  if (signal.aborted) stream.destroy(signal.reason)
  signal.addEventListener('abort', () => stream.destroy(signal.reason), { once: true })
  let bytesRead = 0
  const count = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of stream) {
      bytesRead += chunk.length
      yield chunk
    }
  }
  const bytes = decompress(count())
  const close = () => {
    stream.destroy()
    source.destroy()
  }
  try {
    const head = await readHead(bytes)
    return { name, size, bytesRead: () => bytesRead, close, head, chunks: join(head, bytes) }
  } catch (error) {
    close()
    throw explain(name, error)
  }
}

/** Opens a file or stdin. `size`: of a regular file. Throws InputError or FileError. */
export async function openStream(path: string): Promise<{ stream: Readable; size: number | undefined }> {
  if (path === '-') return { stream: process.stdin, size: undefined }
  const file = await open(path).catch((error) => {
    throw explain(path, error)
  })
  const stats = await file.stat()
  if (stats.isDirectory()) {
    await file.close()
    throw new InputError('is a directory').in(path)
  }
  const stream = createReadStream(path, { fd: file, highWaterMark: chunkBytes })
  return { stream, size: stats.isFile() ? stats.size : undefined }
}

/** Wraps errors of system calls, which have a code; interrupts and faults of the input are passed on. */
function explain(name: string, error: unknown): Error {
  return error instanceof InputError
    ? error.in(name)
    : isSystemError(error)
      ? new FileError('read', name, error)
      : (error as Error)
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return typeof (error as NodeJS.ErrnoException).syscall === 'string'
}

async function readHead(bytes: AsyncGenerator<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let length = 0; length < headBytes + byteOrderMark.length; ) {
    const { done, value } = await bytes.next()
    if (done) break
    chunks.push(value)
    length += value.length
  }
  const head = Buffer.concat(chunks)
  if (/^(\xff\xfe|\xfe\xff)/.test(head.toString('latin1', 0, 2)))
    throw new InputError('is UTF-16, expected UTF-8', 1)
  return head.subarray(0, 3).equals(byteOrderMark) ? head.subarray(3) : head
}

async function* join(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield head.subarray(0, headBytes)
  if (head.length > headBytes) yield head.subarray(headBytes)
  yield* rest
}
