// Opens the input of an import, so that it can be read twice: a file, or a pipe that is copied into an unnamed file first.
import { randomUUID } from 'node:crypto'
import { createReadStream, realpathSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { CommandError } from '../../cli/console.ts'

/** Decoded as latin1: one character per byte. */
export const byteOrderMark = '\xef\xbb\xbf'

/** The input cannot be imported, not even in part. */
export class InputError extends Error {}

/** Bytes read or decompressed at a time. Their plants are added in one transaction. */
const chunkBytes = 128 * 1024

export type Input = Awaited<ReturnType<typeof openInput>>

/**
 * Opens a file, or stdin as `-`. `path`: of a regular file, with links resolved; `read`: yields the decompressed bytes,
 * then an empty chunk.
 */
export async function openInput(name: string, signal: AbortSignal) {
  const path = name !== '-' && statSync(name).isFile() ? realpathSync(name) : undefined
  const file = path
    ? await open(path)
    : await copyPipe(name === '-' ? process.stdin : createReadStream(name), signal)
  return { path, read: () => readChunks(file), close: () => file.close() }
}

/** Copies a pipe into an unnamed file, which disappears with the process, however that ends. */
async function copyPipe(pipe: Readable, signal: AbortSignal): Promise<FileHandle> {
  const path = join(tmpdir(), `plant-store-${randomUUID()}`)
  let copy: FileHandle | undefined
  try {
    copy = await open(path, 'wx+', 0o600)
    rmSync(path)
    await copy.writeFile(pipe, { signal })
    return copy
  } catch (error) {
    await copy?.close()
    const { syscall, message } = error as NodeJS.ErrnoException
    if (syscall !== 'open' && syscall !== 'write') throw error
    throw new CommandError(`cannot write a temporary file in ${tmpdir()} (TMPDIR): ${message}`)
  }
}

/** `magic`: the first bytes, in hex; zstd may begin with a skippable frame. */
const codings = [
  { name: 'gzip', magic: /^1f8b/, open: createGunzip },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: createZstdDecompress },
]

async function* readChunks(file: FileHandle): AsyncGenerator<Buffer> {
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  const coding = codings.find(({ magic }) => magic.test(buffer.toString('hex')))
  yield* coding ? decompress(file, coding) : readBytes(file, 0)
  yield Buffer.alloc(0)
}

/** Decompresses consecutive members or frames. Node's gzip decoder reads all members, its zstd decoder one frame. */
async function* decompress(file: FileHandle, { name, open }: (typeof codings)[number]) {
  const { size } = await file.stat()
  try {
    for (let at = 0; at < size; ) {
      const decoder = open({ chunkSize: chunkBytes })
      // Read errors go to the decoder. A frame that ends before the file is not an error.
      pipeline(readBytes(file, at), decoder).catch(() => {})
      yield* decoder
      at = name === 'zstd' ? at + decoder.bytesWritten : size
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
    if (!/^(Z_|ZSTD_)/.test(`${code}`)) throw error
    throw new InputError(`the ${name} data is damaged: ${message}`)
  }
}

async function* readBytes(file: FileHandle, start: number): AsyncGenerator<Buffer> {
  for (let at = start; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
