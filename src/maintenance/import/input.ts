// Opens the input of an import: a file or stdin, plain or compressed. Its beginning is read first.
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { decompress, prepend, readHead } from './decompress.ts'
import { FileError, InputError } from './input-error.ts'

const chunkBytes = 64 * 1024
const headBytes = 1024
const byteOrderMark = Buffer.from('\ufeff')

export type Input = {
  /** For messages. */
  name: string
  /** The first bytes, decompressed, without a byte order mark. */
  head: Buffer
  /** The whole input, decompressed, without a byte order mark. */
  chunks: AsyncIterable<Buffer>
  /** Share of the file that was read; undefined for a pipe. */
  readShare(): number | undefined
  close(): void
}

/**
 * Opens an input. `path`: `-` is stdin; `file`: a copy of the input; `signal` ends the reading. Throws InputError or FileError
 * when it cannot be read.
 */
export async function openInput(path: string, signal: AbortSignal, file = path): Promise<Input> {
  const name = path === '-' ? 'stdin' : path
  const { stream, size } = await openStream(file)
  addAbortSignal(signal, stream)
  try {
    const bytes = decompress(stream[Symbol.asyncIterator]())
    const start = await readHead(bytes, headBytes)
    if (/^(fffe|feff)/.test(start.toString('hex', 0, 2))) throw new InputError('is UTF-16, expected UTF-8', 1)
    const head = start.indexOf(byteOrderMark) === 0 ? start.subarray(byteOrderMark.length) : start
    const readShare = () => size && stream.bytesRead / size
    return { name, head, chunks: prepend(head, bytes), readShare, close: () => stream.destroy() }
  } catch (error) {
    stream.destroy()
    throw explain(name, error)
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
  /* c8 ignore next 3: a full disk, for a process that can write no coverage either: test/cli/import-broken.test.ts */
  await pipeline(stream, file, { signal }).catch((error) => {
    throw error.syscall === 'write' ? new FileError('write', `${copy} (TMPDIR)`, error) : error
  })
  return true
}

type Stream = Readable & { bytesRead: number }

/** Opens a file or stdin. `size`: of a regular file. Throws InputError or FileError. */
async function openStream(path: string): Promise<{ stream: Stream; size?: number }> {
  if (path === '-') return { stream: process.stdin }
  try {
    const file = await open(path)
    const stats = await file.stat()
    const stream = file.createReadStream({ highWaterMark: chunkBytes })
    if (!stats.isDirectory()) return { stream, ...(stats.isFile() && { size: stats.size }) }
    stream.destroy()
    throw new InputError('is a directory')
  } catch (error) {
    throw explain(path, error)
  }
}

/** Wraps errors of system calls; interrupts and faults of the input are passed on. */
function explain(name: string, error: unknown): Error {
  if (error instanceof InputError) return error.in(name)
  const isOfSystem = typeof (error as NodeJS.ErrnoException).syscall === 'string'
  return isOfSystem ? new FileError('read', name, error as Error) : (error as Error)
}
